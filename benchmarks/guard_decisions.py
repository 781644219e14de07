"""Time of one decision of the guard over its corpus, with calls of 64 KB among them.

    PYTHONPATH=src python benchmarks/guard_decisions.py

One call in forty is large: files that are written, here-documents, patches, edits.
"""

from __future__ import annotations

import json
from pathlib import Path

from harness_adapters.guard.bench import Row, as_json, bench, read_context, read_rows
from harness_adapters.guard.policy import EffectPolicy, default_policy

CORPUS = Path(__file__).parents[1] / "tests" / "guard" / "corpus"
SIZE = 64 << 10


def filled(text: str) -> str:
    """`text` over and over, 64 KB of it."""
    return text * (SIZE // len(text))


def large() -> list[Row]:
    """Calls of 64 KB that do no harm."""
    prose, code = filled("some text, line after line\n"), filled("value = 1\n")
    added = "*** Begin Patch\n*** Add File: notes.txt\n" + filled("+a line\n") + "*** End Patch"
    calls: list[tuple[str, dict[str, object]]] = [
        ("write", {"path": "notes.md", "content": prose}),
        ("write", {"path": "src/values.py", "content": code}),
        ("bash", {"command": f"cat > notes.txt <<'E'\n{prose}E"}),
        ("edit", {"path": "notes.md", "edits": [{"oldText": "a", "newText": prose}]}),
        ("apply_patch", {"patchText": added}),
    ]
    return [
        Row(f"large-{number}", ((tool, json.dumps(arguments)),), attack=False)
        for number, (tool, arguments) in enumerate(calls, 1)
    ]


def main() -> None:
    """Print one JSON object for the corpus, the rewrites and the large calls together."""
    task = read_context(CORPUS / "context.json")
    attacks = [
        row
        for name in ("attacks", "own_attacks")
        for row in read_rows(CORPUS / f"{name}.jsonl", attack=True)
    ]
    benign = [
        row
        for name in ("benign", "own_benign")
        for row in read_rows(CORPUS / f"{name}.jsonl", attack=False)
    ]
    policy = EffectPolicy(default_policy(), task=task)
    print(as_json(bench(policy, task, attacks, [*benign, *large(), *large()], [])))


if __name__ == "__main__":
    main()
