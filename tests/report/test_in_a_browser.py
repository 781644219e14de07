"""The page in its reader's hands: keys, a narrow screen, 2,000 sessions, runs in every state."""

import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_adapters.report.page import write_report
from harness_adapters.store import Store

from .browser import Tab
from .synthetic import make_run

FRAME = 1 / 60
"""Seconds from one picture to the next."""
LIST = "document.getElementById('list')"
SELECTED = f"{LIST}.querySelector('[aria-selected=true]')?.getAttribute('aria-posinset') ?? null"
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
def tab(chromium: str, tmp_path: Path) -> Iterator[Tab]:
    with Tab(chromium, tmp_path / "profile") as tab:
        yield tab


def test_two_thousand_sessions_stay_smooth(tab: Tab, tmp_path: Path) -> None:
    """Counted in CPU time of the page: what it takes to answer a key fits into one picture."""
    root = make_run(tmp_path / "many", steps=2, groups=1, generations=2, tasks=994)
    page = write_report(root)
    tab.measure()
    tab.open(page.as_uri())
    total = int(tab.ask("JSON.parse(document.getElementById('sessions-index').textContent)"
                        ".sessions.length"))  # fmt: skip
    assert total >= 2000
    assert tab.busy() < 3
    tab.ask(f"{LIST}.focus()")
    tab.press("ArrowDown", times=3)
    assert tab.ask(SELECTED) == "3"
    spent = []
    for key in ("ArrowDown", "PageDown") * 20:
        before = tab.busy()
        tab.press(key)
        spent.append(tab.busy() - before)
    assert statistics.median(spent) < FRAME
    tab.press("End")
    assert tab.ask(SELECTED) == str(total)
    # Only the rows in sight exist, wherever the list is scrolled to.
    assert tab.ask(f"{LIST}.querySelectorAll('.row').length") < 60
    before = tab.busy()
    for share in range(20):
        tab.ask(f"new Promise(done => {{ {LIST}.scrollTop = {LIST}.scrollHeight * {share} / 20;"
                " requestAnimationFrame(() => requestAnimationFrame(done)); })")  # fmt: skip
    assert (tab.busy() - before) / 20 < FRAME
    before = tab.busy()
    tab.ask("(() => { const box = document.querySelector('[data-filter=text]');"
            " box.value = 'sort_lines'; box.dispatchEvent(new Event('input')); })()")  # fmt: skip
    assert 0 < int(tab.ask(f"{LIST}.querySelector('.row').getAttribute('aria-setsize')")) < total
    assert tab.busy() - before < 5 * FRAME
    assert tab.complaints == []


def test_the_list_is_walked_by_keys_alone(tab: Tab, finished_run: Path) -> None:
    tab.open(write_report(finished_run).as_uri())
    tab.press("Tab")  # the link over everything
    assert tab.ask("document.activeElement.textContent") == "Skip to the result"
    for _ in range(400):
        if tab.ask("document.activeElement.id") == "list":
            break
        tab.press("Tab")
    assert tab.ask("document.activeElement.id") == "list"
    assert tab.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tab.press("ArrowDown", times=2)
    tab.press("PageDown")
    tab.press("ArrowUp")
    place = int(tab.ask(SELECTED))
    assert place > 4
    assert tab.ask(f"{LIST}.getAttribute('aria-activedescendant')").startswith("row-")
    assert "ended finished" in tab.ask("document.getElementById('session').textContent")
    tab.press("Home")
    assert tab.ask(SELECTED) == "1"
    tab.press("Enter")
    assert tab.ask("document.activeElement.tagName") == "H3"
    assert tab.complaints == []


def test_a_key_that_is_held_down_makes_no_complaint(tab: Tab, finished_run: Path) -> None:
    """Browsers refuse an address that changes too often; the last one still has to arrive."""
    tab.open(write_report(finished_run).as_uri())
    tab.ask(f"{LIST}.focus()")
    tab.press("ArrowDown", times=110)
    tab.press("ArrowUp", times=110)
    tab.ask("new Promise(done => setTimeout(done, 500))")
    chosen = str(tab.ask(f"{LIST}.getAttribute('aria-activedescendant')"))
    assert tab.ask("location.hash") == chosen.replace("row-", "#session-")
    assert tab.complaints == []


def test_a_narrow_screen_shows_list_and_session_in_turn(tab: Tab, finished_run: Path) -> None:
    tab.resize(360, 740)
    tab.open(write_report(finished_run).as_uri())
    assert tab.ask(SIDEWAYS) == 0
    shown = "getComputedStyle(document.getElementById('{}')).display != 'none'"
    assert tab.ask(shown.format("list")) and not tab.ask(shown.format("session"))
    tab.ask(f"{LIST}.querySelector('.row').click()")
    assert tab.ask(shown.format("session")) and not tab.ask(shown.format("list"))
    assert tab.ask(SIDEWAYS) == 0
    tab.ask("document.querySelector('#session .back').click()")
    assert tab.ask(shown.format("list")) and not tab.ask(shown.format("session"))
    assert tab.ask("document.activeElement.id") == "list"
    wide = "[...document.querySelectorAll('.on-wide')].filter(e => e.offsetParent).length"
    assert tab.ask(wide) == 0
    assert tab.complaints == []


@pytest.mark.parametrize("state", ["empty", "running", "broken", "full"])
def test_every_state_of_a_run_fits_every_screen(tab: Tab, tmp_path: Path, state: str) -> None:
    root = tmp_path / state
    if state == "empty":
        Store(root).close()
    else:
        make_run(root, steps=4, groups=2, generations=2, tasks=24, finished=state == "full")
    if state == "broken":
        (root / "metrics.jsonl").write_text('{"step": 0, "reward": NaN}\n{"step": 1, "rew')
        store = Store(root)
        store.set_fact("evaluation", {"base": "base", "treatment": "pi", "temperature": 0.8,
                                      "played": {"base": "base", "pi": "gone"},
                                      "tasks": ["gone-1"]})  # fmt: skip
        store.close()
    page = write_report(root).as_uri()
    for width in (1200, 700, 360):
        tab.resize(width, 800)
        tab.open(page)
        assert tab.ask(SIDEWAYS) == 0, width
        assert tab.ask("document.querySelector('h1').textContent.length") > 10
        dead = (
            "[...document.querySelectorAll('nav a')].filter(a => !document.querySelector(a.hash))"
        )
        assert tab.ask(f"{dead}.length") == 0
    assert tab.complaints == []
