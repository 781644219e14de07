"""Which commits a git command reaches, and which of its words are paths."""

import pytest
from tests.guard.effects.analysing import effects, later

from harness_adapters.guard.effects import DirectoryTree

FUTURE = ("git", "future")


def sh(command):
    return "bash", {"command": command}


@pytest.mark.parametrize(
    "command",
    [
        "git show ':/fix the sign'",
        "git stash show -p",
        "git stash pop",
        "git stash list -p",
        "git show stash@{0}",
        "git diff stash",
        "git diff fixed",
    ],
)
def test_what_others_left_may_be_the_future(command):
    assert FUTURE in effects(command)


@pytest.mark.parametrize(
    "command",
    [
        "git diff src",
        "git log --oneline tests",
        "git ls-files anything",
        "git check-ignore -v build",
        "git stash -q && make; git stash pop",
        "git stash list",
        "git grep -n -e a --and -e b",
        "git help fsck",
        "git reflog --help",
    ],
)
def test_own_paths_and_own_stashes_are_not(command):
    assert FUTURE not in effects(command)


def test_a_stash_of_an_earlier_call_is_the_sessions_own():
    assert FUTURE not in later(sh("git stash -u"), sh("git stash apply"))


def test_a_tree_tells_directories_from_branches(tmp_path):
    (tmp_path / "odd").mkdir()
    tree = DirectoryTree(tmp_path, "/workspace")
    assert FUTURE not in effects("git diff odd", tree=tree)
    assert FUTURE in effects("git diff src", tree=tree)
