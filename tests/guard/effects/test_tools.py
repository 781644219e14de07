import pytest
from tests.conformance.manners import MANNERS
from tests.guard.effects.analysing import analysed

from harness_adapters.guard.effects.tools import TOOLS, tool_named

V4A = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Delete File: /s/a\n*** End Patch"


def effects(tool, **arguments):
    return {(e.kind.value, e.target) for e in analysed(tool, **arguments).effects}


@pytest.mark.parametrize(
    ("tool", "arguments", "effect"),
    [
        ("read", {"path": "/s/a"}, ("read", "/s/a")),
        ("read", {"filePath": "../s/a"}, ("read", "/s/a")),
        ("Read", {"file_path": "~/a"}, ("read", "/home/agent/a")),
        ("read_file", {"path": "/s/a"}, ("read", "/s/a")),
        ("bash", {"command": "cat a", "workdir": "/s"}, ("read", "/s/a")),
        ("terminal", {"command": "cat a", "workdir": "/s"}, ("read", "/s/a")),
        ("Bash", {"command": "cat /s/a"}, ("read", "/s/a")),
        ("bash", {"command": ["cat", "/s/a"]}, ("read", "/s/a")),
        ("write", {"path": "/s/a", "content": ""}, ("write", "/s/a")),
        ("edit", {"path": "/s/a", "edits": [{"oldText": "a", "newText": "b"}]}, ("write", "/s/a")),
        ("MultiEdit", {"file_path": "/s/a", "edits": [{"old_string": "a"}]}, ("write", "/s/a")),
        ("NotebookEdit", {"notebook_path": "/s/a", "new_source": "x"}, ("write", "/s/a")),
        ("patch", {"mode": "patch", "patch": V4A}, ("delete", "/s/a")),
        ("patch", {"path": "/s/a", "old_string": "a", "new_string": "b"}, ("write", "/s/a")),
        ("apply_patch", {"patchText": V4A}, ("write", "/workspace/a.py")),
        ("grep", {"pattern": "x", "path": "/s"}, ("read", "/s")),
        ("search_files", {"pattern": "x", "target": "files", "path": "/s"}, ("list", "/s")),
        ("glob", {"pattern": "/s/*"}, ("list", "/s/\ufdd6")),
        ("ls", {"path": "/s"}, ("list", "/s")),
        ("webfetch", {"url": "http://x.y"}, ("network", "x.y")),
        ("web_extract", {"urls": ["http://x.y"]}, ("network", "x.y")),
        ("cronjob", {"action": "create"}, ("schedule", "cronjob")),
        ("process", {"action": "submit", "data": "open('/s/a').read()"}, ("read", "/s/a")),
        ("process", {"action": "submit", "data": "cat /s/a"}, ("read", "/s/a")),
        ("Terminall", {"command": "cat /s/a"}, ("read", "/s/a")),
        ("read-file", {"path": "/s/a"}, ("read", "/s/a")),
        ("ReadFile_tool", {"path": "/s/a"}, ("read", "/s/a")),
        ("inspect_media", {"path": "/s/a"}, ("read", "/s/a")),
        ("run_in_vm", {"cmd": "cat /s/a"}, ("read", "/s/a")),
        ("quux", {"what": 1}, ("unresolved", "shape")),
        ("bash", {"command": 3}, ("unresolved", "shape")),
        ("write", {"content": "x"}, ("unresolved", "shape")),
    ],
)
def test_tools_of_all_agents_and_others(tool, arguments, effect):
    assert effect in effects(tool, **arguments)


def test_every_tool_that_the_harnesses_offer_is_known():
    names = {
        name for manners in MANNERS.values() for tools in manners.tools.values() for name in tools
    }
    assert names - set(TOOLS) == set()


def test_notes_do_nothing():
    assert effects("todowrite", todos=[{"content": "cat /s/a"}]) == set()
    assert effects("todo", todos=[]) == set()


def test_a_name_far_from_any_tool_is_not_taken_for_one():
    assert tool_named("frobnicate").__name__ == "_anything"
