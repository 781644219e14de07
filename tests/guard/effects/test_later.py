"""What earlier calls of a session left behind, and what lies in the task's tree."""

import pytest
from tests.guard.effects.analysing import analysed, effects, later

from harness_adapters.guard.effects import DirectoryTree
from harness_adapters.guard.effects.holes import STAR

SECRET = ("read", "/s/a")


def sh(command):
    return "bash", {"command": command}


def write(path, content):
    return "write", {"path": path, "content": content}


@pytest.mark.parametrize(
    "calls",
    [
        [write("x.txt", "cat /s/a"), sh("sh x.txt")],
        [write("x.sh", 'cat "$1"'), sh("bash x.sh ../s/a")],
        [write("x.py", "import sys\nopen(sys.argv[1])"), sh("python3 x.py /s/a")],
        [write("Makefile", "x: y\ny:\n\tcat $(P)\n"), sh("make x P=/s/a")],
        [write("package.json", '{"scripts": {"pretest": "cat /s/a"}}'), sh("npm test")],
        [write("tool", "#!/usr/bin/env python3\nopen('/s/a')"), sh("./tool")],
        [
            write("m.py", "def f(p):\n    return open(p)"),
            sh("python3 -c 'import m; m.f(\"/s/a\")'"),
        ],
        [write("m.py", "open('/s/a')"), sh("python3 -m m")],
        [sh("echo /s/a > p"), sh("cat $(cat p)")],
        [sh("echo /s/a > p"), sh("xargs cat < p")],
        [sh("echo /s/a > p"), sh("python3 -c \"open(open('p').read().strip())\"")],
        [sh("echo Y2F0IC9zL2E= > b"), sh("base64 -d b | sh")],
        [sh("ln -s / up"), sh("cat up/s/a")],
        [sh("ln -s .. up"), sh("cat up/s/a")],
        [sh("echo 'cat /s/a' > x; mv x y"), sh("sh y")],
        [
            write("x.sh", "true"),
            ("edit", {"path": "x.sh", "edits": [{"oldText": "true", "newText": "cat /s/a"}]}),
            sh("sh x.sh"),
        ],
        [sh("echo cat > x"), sh("echo /s/a >> x"), sh("sh -c \"$(tr '\\n' ' ' < x)\"")],
    ],
)
def test_files_of_earlier_calls_are_read_when_they_are_used(calls):
    assert SECRET in later(*calls)


@pytest.mark.parametrize(
    "calls",
    [
        [sh("date > x"), sh("sh x")],
        [sh("gunzip -c x.gz > x"), sh("sh x")],
        [write("r.py", "import sys\nexec(sys.stdin.read())"), sh("python3 r.py < data.txt")],
        [
            write("r.py", "import subprocess, sys\nsubprocess.run(sys.stdin.read(), shell=True)"),
            sh("python3 r.py < data.txt"),
        ],
    ],
)
def test_running_what_nobody_knows_is_unresolved(calls):
    assert ("unresolved", "code") in later(*calls)


def test_a_file_of_the_task_that_cant_be_read_is_its_own_program():
    assert not any(
        kind == "unresolved" for kind, _ in effects("./run.sh && python3 main.py && make")
    )


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "run.sh").write_text("cat /s/a\n")
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "b.txt").write_text("/s/a")
    (tmp_path / "way").symlink_to("/s")
    (tmp_path / "host").symlink_to(tmp_path.parent)
    return DirectoryTree(tmp_path, "/workspace")


def test_a_tree_tells_contents_links_and_globs(tree):
    assert SECRET in effects("sh run.sh", tree=tree)
    assert SECRET in effects("cat $(cat b.txt)", tree=tree)
    assert SECRET in effects("cat way/a", tree=tree)
    found = effects("cat *.txt", tree=tree)
    assert found >= {("read", "/workspace/a.txt"), ("read", "/workspace/b.txt")}
    assert ("read", "/workspace/none-\ufdd2") in effects("cat none-*", tree=tree)


def test_a_tree_never_follows_a_link_on_this_machine(tree, tmp_path):
    assert tree.read(f"/workspace/host/{tmp_path.name}/a.txt") is None
    assert tree.read("/workspace/../a.txt") is None
    assert tree.read("/etc/passwd") is None


def test_a_script_knows_where_it_lies():
    script = write("bin/x.sh", 'cd "$(dirname "$0")/.." && cat a')
    assert ("read", "/workspace/a") in later(script, sh("bash bin/x.sh"))


def test_a_temporary_file_is_one_name_of_its_directory():
    assert ("read", f"/tmp/tmp.{STAR}") in effects("cat $(mktemp)")


@pytest.mark.parametrize(
    "command",
    [
        "cat > x.sh <<'E'\ncat /s/a\nE",
        "printf 'x:\\n\\tcat /s/a\\n' | tee Makefile",
        "python3 -c \"open('x.sh', 'w').write('cat /s/a')\"",
        "python3 -c \"open('x.py', 'w').write(open('y').read() + '\\nopen(\\'/s/a\\')')\"",
        "sed -i \"1i open('/s/a')\" x.py",
        'echo \'int main() { fopen("/s" "/a", "r"); }\' > x.c',
        "echo 'puts File.read(\"/s/a\")' > x.rb",
        "echo 'func main() { exec.Command(\"cat /s/a\") }' > x.go",
    ],
)
def test_code_counts_however_it_is_written(command):
    deferred = [effect for effect in analysed("bash", command=command).effects if effect.deferred]
    assert SECRET in {(effect.kind.value, effect.target) for effect in deferred}


def test_a_copy_of_the_tasks_own_code_needs_no_look(tmp_path):
    (tmp_path / "a.py").write_text("open('/s/a')")
    tree = DirectoryTree(tmp_path, "/workspace")
    assert SECRET not in effects("cp a.py b.py", tree=tree)


def test_what_a_compiled_program_only_says_is_no_effect():
    usage = 'int main() { printf("see https://a.b/c, %s/%s, system(x)", p, q); }'
    assert effects(f"echo '{usage}' > a.c; cc a.c") == {
        ("write", "/workspace/a.c"),
        ("read", "/workspace/a.c"),
    }
