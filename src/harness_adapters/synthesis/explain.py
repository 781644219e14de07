"""One session's way through the synthesis, as a page that a person can read.

Made from the journal alone. The page makes no request; text of the session is shown as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

from harness_adapters.errors import StoreError
from harness_adapters.report.markup import cell, section, table
from harness_adapters.report.svg import safe
from harness_adapters.synthesis.gates.sequence import GATES
from harness_adapters.synthesis.journal import KEPT, CandidateRecord, Journal, SessionRecord
from harness_adapters.synthesis.reasons import Reason

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_OWN_STYLE = """
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--track); padding: 14px 16px;
  border-radius: 8px; font-size: .88rem; max-height: 26rem; overflow-y: auto; }
td.verdict { white-space: nowrap; font-weight: 620; }
td.skipped, td.skipped + td { color: var(--muted); }
"""


def write_page(out: Path, name: str) -> Path:
    """Write `OUT/.synth/explain/KEY.html` for the session that `name` begins; the page's path.

    `name` is the start of a session's id, of its key, of a task's id, or a source's file name.
    Raises StoreError where none or several sessions fit.
    """
    journal = Journal(out / ".synth" / "journal.jsonl")
    if not journal.path.exists():
        raise StoreError(f"{out}: no data set that `synth` wrote; give its directory with --out")
    records = {record.key: record for record in journal.records()}
    found = [record for record in records.values() if _fits(record, name)]
    exact = [record for record in found if name in (record.key, record.session)]
    found = exact or found
    if len(found) != 1:
        known = ", ".join(
            f"{each.key} ({each.source})" for each in (found or [*records.values()])[:5]
        )
        problem = "no session" if not found else f"{len(found)} sessions"
        raise StoreError(f"{out}: {problem} named {name!r}; there are, among others, {known}")
    place = out / ".synth" / "explain" / f"{found[0].key}.html"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(page(found[0]), "utf-8")
    return place


def _fits(record: SessionRecord, name: str) -> bool:
    names = [record.key, record.session, record.source]
    names += [one.id for one in record.candidates if one.id]
    return any(each.startswith(name) for each in names if each)


def page(record: SessionRecord) -> str:
    """The whole page."""
    assets = files("harness_adapters.report").joinpath("assets")
    style = "".join(assets.joinpath(each).read_text("utf-8") for each in ("chart.css", "page.css"))
    kept = [one for one in record.candidates if not one.reason and one.id]
    headline = (
        f"{len(kept)} task{'s' if len(kept) != 1 else ''} kept"
        if record.outcome == KEPT
        else f"Dropped: {record.outcome.replace('_', ' ')}"
    )
    parts = [
        section("session", "The session", _facts(record)),
        section("found", "What was found", _found(record.candidates)),
        *(
            section(f"candidate-{number}", _title(one, number), _candidate(one))
            for number, one in enumerate(record.candidates, 1)
            if one.id
        ),
    ]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{safe(headline)}: {safe(record.source)}</title>
<style>{style}{_OWN_STYLE}</style>
</head>
<body>
<header class="top">
<p class="kicker">harness-adapters synth · {safe(record.source)}</p>
<h1>{safe(headline)}</h1>
<p class="scope">{safe(_why(record))}</p>
</header>
<main id="content">
{"".join(parts)}
</main>
<footer>Made from the journal by <code>harness-adapters synth explain</code>.</footer>
</body>
</html>
"""


def meaning(reason: str) -> str:
    """What a reason code stands for."""
    return _MEANINGS.get(reason, "")


def _why(record: SessionRecord) -> str:
    if record.outcome == KEPT:
        return "Every gate was passed by at least one piece of work in this session."
    return " ".join(filter(None, [meaning(record.outcome), record.detail]))


def _facts(record: SessionRecord) -> str:
    rows = {
        "id": record.session or "-",
        "file": record.source,
        "format": record.format or "not recognised",
        "licence": record.licence or "none given",
        "turns": record.turns,
        "tool calls": record.calls,
        "time spent on it": f"{record.seconds:.1f} s",
        "tokens asked of a model": record.tokens,
    }
    body = "".join(f"<tr><td>{safe(k)}</td><td>{safe(v)}</td></tr>" for k, v in rows.items())
    return table(("", ""), body, plain=True)


def _found(candidates: Sequence[CandidateRecord]) -> str:
    if not candidates:
        return (
            "<p>No miner saw a piece of work: no check that failed and then passed, no project "
            "with tests, no fact that was computed from data.</p>"
        )
    rows = "".join(
        f"<tr><td>{safe(one.type or '-')}</td>"
        f"<td>{safe(f'{one.first_turn} to {one.last_turn}' if one.id else '-')}</td>"
        f'<td class="verdict">{safe(one.reason or "kept")}</td>'
        f"<td>{safe(meaning(one.reason))} {safe(one.detail)}</td></tr>"
        for one in candidates
    )
    return table(("type", "turns", "end", "why"), rows)


def _title(one: CandidateRecord, number: int) -> str:
    return f"{number}. {one.type.capitalize()}: {one.reason.replace('_', ' ') or 'kept'}"


def _candidate(one: CandidateRecord) -> str:
    tried = {gate.gate: gate for gate in one.gates}
    rows = []
    for name in GATES:
        gate = tried.get(name)
        if gate is None:
            skipped = '<td class="skipped">not reached</td><td></td>'
            rows.append(f"<tr><td>{safe(name)}</td>{skipped}{cell('')}</tr>")
            continue
        facts = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in gate.facts.items())
        rows.append(
            f'<tr><td>{safe(name)}</td><td class="verdict">{safe(gate.reason or "passed")}</td>'
            f"<td>{safe(gate.detail or facts)}</td>{cell(f'{gate.seconds:.1f}')}</tr>"
        )
    changed = ", ".join(one.changed) or "nothing"
    return (
        f'<p class="note">Task <code>{safe(one.id)}</code>; its check: '
        f"<code>{safe(one.check)}</code>; the work changed {safe(changed)}; the verifier ran "
        f"{one.scores} times.</p><h3>What the agent is told</h3><pre>{safe(one.instruction)}</pre>"
        f"<h3>Gates</h3>{table(('gate', 'verdict', 'what it saw', '>seconds'), ''.join(rows))}"
    )


def _meanings() -> dict[str, str]:
    """The reasons' own documentation: the texts below the members in `reasons.py`."""
    import ast
    import inspect

    from harness_adapters.synthesis import reasons

    body = ast.parse(inspect.getsource(reasons)).body
    members = next(node for node in body if isinstance(node, ast.ClassDef)).body
    found: dict[str, str] = {}
    for one, text in pairwise(members):
        match one, text:
            case (
                ast.Assign(value=ast.Constant(value=str(code))),
                ast.Expr(value=ast.Constant(value=str(said))),
            ):
                found[Reason(code)] = said
    return found


_MEANINGS = _meanings()
