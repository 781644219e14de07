"""Edits, patches and diffs against results worked out by hand or by difflib."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.synthesis.replay.diffs import (
    apply_hunks,
    new_lines,
    parse_diff,
    undo_hunks,
    whole_new_file,
)
from harness_adapters.synthesis.replay.edits import Edited, replace
from harness_adapters.synthesis.replay.patches import apply_chunks, parse_patch

TEXT = "def f():\n    return 1\n\n\ndef g():\n    return 1\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("return 1", "return 2", Edited(TEXT.replace("return 1", "return 2", 1))),
        ("nothing", "x", None),
        ("", "x", None),
        ("def g():\n    return 1", "", Edited(TEXT[:-22] + "\n")),
        # White space that the model got wrong: the lines are found all the same.
        (
            "def g():  \n  return 1\n",
            "def h():\n    pass\n",
            Edited(TEXT[:-22] + "def h():\n    pass\n", True),
        ),
    ],
)
def test_replace(old: str, new: str, expected: Edited | None) -> None:
    assert replace(TEXT, old, new) == expected


def test_replace_everywhere_with_typographic_quotes_and_with_windows_line_ends() -> None:
    assert replace(TEXT, "1", "2", everywhere=True) == Edited(TEXT.replace("1", "2"))
    assert replace("say('x')\n", "say(\u2018x\u2019)", "say('y')") == Edited("say('y')\n", True)
    crlf = TEXT.replace("\n", "\r\n")
    found = replace(crlf, "f():\n    return 1", "f():\n    return 2")
    assert found == Edited(crlf.replace("return 1", "return 2", 1))


PATCH = """*** Begin Patch
*** Update File: a.py
@@ def g():
-    return 1
+    return 2
*** Add File: new.py
+x = 1
+y = 2
*** Delete File: old.py
*** Update File: b.py
*** Move to: c.py
@@
 first
-second
+2nd
*** End of File
*** End Patch
"""


def test_a_patch_of_every_kind() -> None:
    update, add, delete, move = parse_patch(f"apply_patch <<'EOF'\n{PATCH}EOF\n")
    assert [each.verb for each in (update, add, delete, move)] == [
        "Update",
        "Add",
        "Delete",
        "Update",
    ]
    # The anchor leads to the second of two lines that are the same.
    assert apply_chunks(TEXT, update.chunks) == (TEXT[:-2] + "2\n", False)
    assert add.added == ["x = 1", "y = 2"]
    assert (move.path, move.move_to) == ("b.py", "c.py")
    assert apply_chunks("first\nsecond\nfirst\nsecond", move.chunks) == (
        "first\nsecond\nfirst\n2nd\n",
        False,
    )
    assert apply_chunks("first\n  second\n", move.chunks) == ("first\n2nd\n", True)
    assert apply_chunks("other\n", move.chunks) is None


def test_what_is_no_patch() -> None:
    assert parse_patch("nothing") == []
    assert parse_patch("*** Begin Patch\nnonsense\n") == []


TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "  d", "@@", "--- x", "+++ y"])).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)


@given(TEXTS, TEXTS, st.booleans(), st.booleans())
def test_diffs_apply_and_undo(old: str, new: str, old_open: bool, new_open: bool) -> None:
    old = old.removesuffix("\n") if old_open and not old.endswith("\n\n") else old
    new = new.removesuffix("\n") if new_open and not new.endswith("\n\n") else new
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), "a/x", "b/x"
    )
    diff = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    files = parse_diff(diff)
    if old == new or not diff:
        return
    [found] = files
    assert (found.old_path, found.new_path) == ("x", "x")
    assert apply_hunks(old, found.hunks) == new
    assert undo_hunks(new, found.hunks) == old
    known = new_lines(found.hunks)
    texts = new.removesuffix("\n").split("\n")
    assert all(texts[number - 1] == line for number, line in known.items() if number)
    if not old:
        assert whole_new_file(found.hunks) == new


def test_a_shifted_hunk_is_found_and_a_wrong_one_is_not() -> None:
    [found] = parse_diff("@@ -1,2 +1,2 @@\n def g():\n-    return 1\n+    return 3\n")
    assert apply_hunks(TEXT, found.hunks) == TEXT[:-2] + "3\n"
    assert apply_hunks("other\n", found.hunks) is None
