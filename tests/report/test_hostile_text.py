import json
import random
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness_adapters.records import Decision, Phase, ToolCall, Verdict
from harness_adapters.report.page import write_report
from harness_adapters.store import Store

from .browser import browse
from .html_reader import Page, section_of
from .synthetic import make_rollout, make_run, turn

EVIL = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'><!-- \x1b[31m\u202e "
    "\u2028 ${alert(3)} </style></title>"
)


@pytest.fixture
def hostile_run(tmp_path: Path) -> Path:
    """Every text of a run that a model, a task or a tool could write is an attack."""
    root = make_run(tmp_path / "hostile", steps=2, tasks=4, groups=1, generations=2)
    store = Store(root)
    call = ToolCall(EVIL, EVIL, json.dumps({"x": EVIL}), Verdict(Decision.FLAG, EVIL, EVIL), True)
    new: list[dict[str, object]] = [
        {"role": "system", "content": EVIL},
        {"role": "user", "content": EVIL},
    ]
    results: list[dict[str, object]] = [{"role": "tool", "content": EVIL}, {"role": EVIL}]
    for arm, family in product(("base", "pi"), (EVIL, EVIL + "2")):
        plain = make_rollout(
            random.Random(0), phase=Phase.TEST, arm=arm, family=family, level=1, instance=1,
            chance=1.0, started=0.0,
        )  # fmt: skip
        turns = [turn(0, EVIL, [call], new, 0), turn(1, EVIL, [], results, 1)]
        store.add(
            replace(plain, id=family + arm, task=family, adapter=EVIL, error=EVIL,
                    verifier_output=EVIL, turns=turns)
        )  # fmt: skip
    store.set_fact("dataset", {"hash": EVIL, "unseen_families": [EVIL + "2"]})
    store.set_fact(
        "evaluation",
        {"base": "base", "treatment": "pi", "played": {"base": EVIL, "pi": EVIL},
         "temperature": 0.8, "tasks": [EVIL, EVIL + "2"]},
    )  # fmt: skip
    store.set_fact("warm_base", {"key": EVIL, "demonstrations": 1, "seconds": 1, "losses": [1.0]})
    store.set_fact("settings", {EVIL: EVIL, "harness": {"name": "pi"}})
    store.set_fact("environment", {EVIL: [EVIL]})
    store.set_fact("best", {"step": EVIL, "adapter": EVIL})
    store.close()
    return root


def test_hostile_text_never_becomes_markup(hostile_run: Path) -> None:
    html = write_report(hostile_run).read_text("utf-8")
    page = Page(html)
    scripts = [a for t, a in page.tags if t == "script"]
    assert sum(a.get("type") is None for a in scripts) == 1
    assert all("alert" not in "".join(v or "" for k, v in a.items()) for a in scripts)
    assert not any(t == "img" or "onerror" in a for t, a in page.tags)
    assert html.count("<title>") == 1 + html.count("</title></")
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "alert(" not in page.scripts["code"]
    # It is all there, as text: in the server-made part, and in the data.
    assert "</script><script>alert(1)</script><img src=x onerror=alert(2)>" in page.text
    blocks = [json.loads(v) for k, v in page.scripts.items() if re.fullmatch(r"session-\d+", k)]
    evil = [b for b in blocks if "alert(1)" in b["id"]]
    assert len(evil) == 4
    for anchor in ("tasks", "unseen"):
        assert "alert(1)" in Page(section_of(html, anchor)).text
    assert "</script><script>alert(1)" in evil[0]["turns"][0]["calls"][0]["result"]
    for plot in (hostile_run / "report" / "plots").glob("*.svg"):
        tags = {e.tag.rsplit("}", 1)[-1] for e in ElementTree.fromstring(plot.read_text()).iter()}
        assert tags <= {"svg", "style", "rect", "text", "line", "circle", "path", "title", "a"}


def test_a_browser_opens_a_session_without_a_complaint(
    hostile_run: Path, tmp_path: Path, chromium: str
) -> None:
    page = write_report(hostile_run)
    sessions = json.loads(Page(page.read_text("utf-8")).scripts["sessions-index"])["sessions"]
    place = next(i for i, s in enumerate(sessions) if "alert" in s["task"])
    dom, console = browse(chromium, f"{page.as_uri()}#session-{place}", tmp_path / "profile")
    assert console == ""
    shown = Page(dom)
    assert "what the model wrote, token for token" in shown.text
    assert "</script><script>alert(1)</script>" in shown.text
    assert not any(t == "img" for t, _ in shown.tags)
    assert re.search(r"\d+ sessions", shown.text)
    assert sum(a.get("role") == "option" for _, a in shown.tags) >= 8
