"use strict";
// A page that `watch` serves: reloads itself when the run has moved on and nobody is at it.
(() => {
  const seen = document.documentElement.dataset.version;
  let touched = 0;
  for (const event of ["pointerdown", "keydown", "wheel", "touchmove"]) {
    addEventListener(event, () => { touched = Date.now(); }, { passive: true });
  }
  setInterval(async () => {
    if (document.hidden || Date.now() - touched < 8000) return;
    try {
      const answer = await fetch("version", { cache: "no-store" });
      if (answer.ok && (await answer.text()) !== seen) location.reload();
    } catch {
      // The server is gone; the page stays readable.
    }
  }, 3000);
})();
