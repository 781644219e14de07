"use strict";
// Replay of sessions. All session text is hostile: it goes into the page as text nodes only.
(() => {
  const shared = JSON.parse(document.getElementById("sessions-index").textContent);
  const sessions = shared.sessions;
  const list = document.getElementById("list");
  const detail = document.getElementById("session");
  const replay = document.getElementById("replay");
  const count = document.getElementById("count");
  const filters = [...document.querySelectorAll("[data-filter]")];
  const ROW = 52;
  const MARKS = { solved: ["✓", "solved"], failed: ["✕", "not solved"], excluded: ["–", "no reward"] };
  let shown = [];
  let selected = -1;

  const make = (tag, style, ...children) => {
    const element = document.createElement(tag);
    if (style) element.className = style;
    element.append(...children.filter((c) => c !== null && c !== undefined));
    return element;
  };
  const plural = (n, word) => `${n.toLocaleString()} ${word}${n === 1 ? "" : "s"}`;
  const mark = (s) => {
    const [sign, words] = MARKS[s.outcome];
    const element = make("span", `mark ${s.outcome}`, sign);
    element.setAttribute("role", "img");
    element.setAttribute("aria-label", words);
    return element;
  };

  // Filters

  const keys = { phase: (s) => s.phase, arm: (s) => s.arm, family: (s) => s.family, outcome: (s) => s.outcome, guard: (s) => s.guard };
  for (const select of filters) {
    const key = keys[select.dataset.filter];
    if (key) {
      const values = [...new Set(sessions.map(key))].filter((v) => v !== "");
      if (select.dataset.filter === "family") values.sort();
      for (const value of values) {
        const words = select.dataset.filter === "outcome" ? MARKS[value][1] : value;
        select.append(new Option(words, value));
      }
    }
    select.addEventListener("input", () => { apply(); list.scrollTop = 0; });
  }

  function apply() {
    const wanted = filters.map((f) => [f.dataset.filter, f.value]).filter(([, v]) => v !== "");
    shown = sessions.map((_, i) => i).filter((i) => wanted.every(([name, value]) =>
      name === "text" ? sessions[i].task.toLowerCase().includes(value.toLowerCase()) : keys[name](sessions[i]) === value));
    count.textContent = plural(shown.length, "session");
    sizer.style.height = `${shown.length * ROW}px`;
    for (const row of rows.values()) row.remove();
    rows.clear();
    draw();
  }

  // The list: only the rows in sight exist, and those that stay in sight stay as they are.

  const sizer = make("div");
  const rows = new Map();
  list.append(sizer);

  function rowOf(place) {
    const id = shown[place];
    const s = sessions[id];
    const top = make("div", "", mark(s), s.task);
    const played = s.phase === "train" ? `${s.arm}, step ${s.step}` : s.arm;
    const second = make("div", "second", [`${s.phase}, ${played}`, plural(s.calls, "call"), s.guard].filter(Boolean).join(" · "));
    const row = make("div", "row", top, second);
    row.id = `row-${id}`;
    row.style.top = `${place * ROW}px`;
    row.setAttribute("role", "option");
    row.setAttribute("aria-posinset", String(place + 1));
    row.setAttribute("aria-setsize", String(shown.length));
    row.addEventListener("click", () => open(id));
    return row;
  }

  function draw(top = list.scrollTop) {
    const first = Math.max(0, Math.floor(top / ROW) - 6);
    const last = Math.min(shown.length, Math.ceil((top + list.clientHeight) / ROW) + 6);
    for (const [place, row] of rows) {
      if (place < first || place >= last) { row.remove(); rows.delete(place); }
    }
    let before = sizer;
    for (let place = first; place < last; place++) {
      if (!rows.has(place)) {
        rows.set(place, rowOf(place));
        before.after(rows.get(place));
      }
      before = rows.get(place);
      const chosen = String(shown[place] === selected);
      if (before.getAttribute("aria-selected") !== chosen) before.setAttribute("aria-selected", chosen);
    }
    const active = selected >= 0 && rows.get(shown.indexOf(selected));
    if (active) list.setAttribute("aria-activedescendant", active.id);
    else list.removeAttribute("aria-activedescendant");
  }
  let waiting = false;
  list.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  });
  list.addEventListener("keydown", (event) => {
    const place = shown.indexOf(selected);
    const page = Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
    const moves = { ArrowDown: place + 1, ArrowUp: place - 1, PageDown: place + page, PageUp: place - page, Home: 0, End: shown.length - 1, Enter: place };
    if (!(event.key in moves) || shown.length === 0) return;
    event.preventDefault();
    const next = Math.min(shown.length - 1, Math.max(0, moves[event.key]));
    open(shown[next], event.key === "Enter");
  });

  // One session

  const block = (title, text, style) => make("div", style, title, make("pre", "", text));
  const heading = (words, extra) => make("h4", "", words, extra ? make("span", "dim", extra) : null);

  function callView(call) {
    const head = make("div", "head", make("b", "", call.name), make("span", call.decision === "allow" ? "tag" : "tag loud", call.decision));
    if (call.malformed) head.append(make("span", "tag loud", "malformed"));
    const why = [call.rule, call.reason].filter(Boolean).join(": ");
    if (why) head.append(make("span", "dim", why));
    const body = make("div", "call", head, make("pre", "", call.arguments));
    const result = make("div", "result");
    if (call.result === null) result.append(make("pre", "", "(the session ended before a result came back)"));
    else result.append(make("pre", "", call.result === "" ? "(empty result)" : call.result));
    body.append(result);
    return body;
  }

  function turnView(turn, index) {
    const words = `${turn.tokens[0].toLocaleString()} tokens read, ${turn.tokens[1].toLocaleString()} written, ${turn.seconds} s, ${turn.finish}`;
    const element = make("div", "turn", heading(`Turn ${index + 1}`, words));
    for (const [role, text] of turn.read) element.append(block(heading(role), text, "said"));
    if (turn.calls.length === 0) element.append(make("pre", "", turn.text || "(nothing)"));
    else {
      const raw = make("details", "", make("summary", "", "what the model wrote, token for token"), make("pre", "", turn.text));
      element.append(...turn.calls.map(callView), raw);
    }
    return element;
  }

  // Browsers refuse an address that changes many times a second, as it would under a held key.
  let addressing = 0;
  function address(id) {
    clearTimeout(addressing);
    addressing = setTimeout(() => history.replaceState(null, "", `#session-${id}`), 150);
  }

  function open(id, focus) {
    selected = id;
    const s = sessions[id];
    const data = JSON.parse(document.getElementById(`session-${id}`).textContent);
    const back = make("button", "back", "← all sessions");
    back.addEventListener("click", () => { replay.classList.remove("open"); draw(); list.focus(); });
    const title = make("h3", "", s.task);
    title.tabIndex = -1;
    const facts = [s.phase, s.phase === "train" ? `step ${s.step}` : null, `played by ${s.arm}`, data.adapter !== s.arm ? data.adapter : null,
      `${s.family} level ${s.level}`, `attempt ${s.attempt + 1}`, `temperature ${data.temperature}`];
    const view = [back, title, make("div", "meta", facts.filter(Boolean).join(" · "))];
    const peers = sessions.map((p, i) => [p, i]).filter(([p, i]) => i !== id && p.task === s.task && p.phase === s.phase && p.step === s.step).slice(0, 12);
    if (peers.length) {
      const row = make("div", "peers", make("span", "note", "same task:"));
      for (const [p, i] of peers) {
        const button = make("button", "", mark(p), `${p.arm}, attempt ${p.attempt + 1}`);
        button.addEventListener("click", () => open(i, true));
        row.append(button);
      }
      view.push(row);
    }
    if (data.instruction) view.push(block(heading("Task"), data.instruction, "instruction"));
    const system = shared.texts[data.system];
    if (system) view.push(make("details", "said", make("summary", "", "system prompt"), make("pre", "", system)));
    view.push(...data.turns.map(turnView));
    if (data.turns.length === 0) view.push(make("p", "note", "The model was never called."));
    const reward = s.reward === null ? "no reward" : `reward ${s.reward.toFixed(3)}`;
    const score = data.score === null ? "" : ` (score ${data.score})`;
    const outcome = make("div", `outcome ${s.outcome}`, mark(s), make("b", "", MARKS[s.outcome][1]),
      `, ${reward}${score}, ${plural(s.calls, "tool call")}, ended ${data.end}, ${data.seconds} s`);
    if (data.conduct) outcome.append(" ", make("span", "tag loud", data.conduct));
    if (data.error) outcome.append(make("div", "note", data.error));
    view.push(outcome);
    if (data.verifier.trim()) view.push(block(heading("Verifier"), data.verifier, "said"));
    // Places are read before anything is changed: a page that is asked in between lays itself out.
    const place = shown.indexOf(id);
    const height = list.clientHeight;
    const before = list.scrollTop;
    let top = before;
    if (place >= 0) top = Math.min(place * ROW, Math.max(top, (place + 1) * ROW - height));
    if (detail.scrollTop) detail.scrollTop = 0;
    if (top !== before) list.scrollTop = top;
    draw(top);
    detail.replaceChildren(...view);
    replay.classList.add("open");
    address(id);
    if (focus) title.focus({ preventScroll: true });
  }

  apply();
  window.addEventListener("resize", draw);
  function follow() {
    const asked = /^#session-(\d+)$/.exec(location.hash);
    if (!asked || !sessions[Number(asked[1])]) return;
    open(Number(asked[1]), true);
    document.getElementById("sessions").scrollIntoView();
  }
  window.addEventListener("hashchange", follow);
  follow();
})();
