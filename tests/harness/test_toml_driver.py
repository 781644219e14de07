"""Harnesses from a file: checked when read, and a stranger's agent in a real session."""

import shutil
import subprocess
from pathlib import Path

import pytest

from conformance.playing import CHAT, play
from gateway.support import make_gateway
from harness_adapters.cli.options import overrides
from harness_adapters.errors import HarnessError
from harness_adapters.gateway.scripted import FINAL_TEXT, oracle_replies
from harness_adapters.harness import Profile
from harness_adapters.harness.registry import get_harness
from harness_adapters.harness.toml_driver import TomlHarness
from harness_adapters.records import SessionEnd
from harness_adapters.sandbox import ExecResult
from harness_adapters.tasks import Edit, Shell, WriteFile

PLAIN = """
name = "plain"
version = "1"
command = ["/usr/bin/python3", "/opt/plain/plain_agent.py", "{{home_file}}", "{{prompt}}"]
prompt = "argument"
success_codes = [0]
env = { QUIET = "1" }

[files]
"plain.json" = '''{"model": "{{model}}", "url": "{{ base_url }}"}'''

[programs]
"/opt/plain/plain_agent.py" = "plain_agent.py"

[tools.shell]
name = "sh"
arguments = { line = "{{command}}" }
[tools.write]
name = "sh"
arguments = { line = "cat > {{path}} <<'EOF'\\n{{content}}\\nEOF" }
[tools.edit]
name = "edit"
arguments = { file = "{{path}}", changes = [{ old = "{{old}}", new = "{{new}}", all = false }] }

[lean]
env = { QUIET = "2" }
files = { "more.txt" = "{{max_context}}" }
""".replace("{{home_file}}", "/home/agent/plain.json")

SHELL_WORDS = 'line = "printf %s {{content|shell}} > {{ path | shell }}"'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    shutil.copy(Path(__file__).with_name("plain_agent.py"), tmp_path)
    place = tmp_path / "plain.toml"
    place.write_text(PLAIN)
    return place


async def test_a_strangers_agent_plays_a_real_session(file: Path, tmp_path: Path) -> None:
    harness = get_harness(str(file))
    actions = [WriteFile("a.txt", "hello"), Shell("tr a-z A-Z < a.txt > b.txt; cat b.txt")]
    gateway = make_gateway(tmp_path, {"s1": oracle_replies(CHAT, harness, actions)})
    prompt = "--help $HOME {{model}} \"'\\ ä\n"
    played = await play(harness, gateway, tmp_path, prompt=prompt)
    assert (played.end, played.why) == (SessionEnd.FINISHED, "")
    assert played.left == {"a.txt": "hello\n", "b.txt": "HELLO\n"}
    assert played.tool_results[-1] == "HELLO\n"
    assert played.tape.turns[0].new_messages[-1]["content"] == prompt
    assert [c.name for turn in played.tape.turns for c in turn.calls] == ["sh", "sh"]


def test_profiles_and_placeholders(file: Path) -> None:
    harness = TomlHarness.load(file)
    assert harness.name == "plain"
    assert harness.version.startswith("1+")
    launches = {
        profile: harness.launch("do {{it}}", base_url="http://x/v1", profile=profile, max_context=9)
        for profile in Profile
    }
    stock, lean = launches[Profile.STOCK], launches[Profile.LEAN]
    assert stock.argv[-1] == "do {{it}}", "a prompt is data"
    assert (stock.env["QUIET"], lean.env["QUIET"]) == ("1", "2")
    assert stock.home_files == {"plain.json": '{"model": "model", "url": "http://x/v1"}'}
    assert lean.home_files == stock.home_files | {"more.txt": "9"}
    assert stock.binds[0].source == file.parent / "plain_agent.py"


def test_the_files_content_is_part_of_the_version(file: Path) -> None:
    before = TomlHarness.load(file).version
    file.write_text(PLAIN + "# another\n")
    assert TomlHarness.load(file).version != before


def test_native_calls_fill_structures_and_search_nothing_twice(file: Path) -> None:
    harness = TomlHarness.load(file)
    name, arguments = harness.native_call(Edit("a", "{{new}}", "y"))
    assert name == "edit"
    assert arguments == {"file": "a", "changes": [{"old": "{{new}}", "new": "y", "all": False}]}
    assert harness.native_call(Shell("ls")) == ("sh", {"line": "ls"})


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "plain"', 'name = "Plain agent"', "name"),
        ('name = "plain"', 'name = "pi"', "built-in"),
        ('version = "1"', "", "version"),
        ('version = "1"', 'version = "1"\ncolour = "red"', "colour"),
        ('prompt = "argument"', 'prompt = "stdin"', "if and only if"),
        ('"{{prompt}}"]', '"x"]', "if and only if"),
        ("{{model}}", "{{modle}}", "unknown placeholder {{modle}}"),
        ("{{command}}", "{{comand}}", "unknown placeholder {{comand}}"),
        (
            "[lean]",
            '[tools.finish]\nname = "x"\narguments = { a = "{{path}}" }\n[lean]',
            "{{path}}",
        ),
        ('"plain.json"', '"../plain.json"', "not a path below"),
        ('"/opt/plain/plain_agent.py" =', '"opt" =', "not an absolute path"),
        ("[files]", "[files", "not TOML"),
    ],
)
def test_mistakes_are_one_line_with_the_files_name(
    file: Path, old: str, new: str, words: str
) -> None:
    assert old in PLAIN
    file.write_text(PLAIN.replace(old, new, 1))
    with pytest.raises(HarnessError) as caught:
        get_harness(str(file))
    assert str(file) in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value).strip()


def test_words_of_a_shell_line_and_braces_of_the_agents_own(file: Path) -> None:
    heredoc = "line = \"cat > {{path}} <<'EOF'\\n{{content}}\\nEOF\""
    braces = """'{{ origin }} {{{{task}}}} {{{{ a | shell }}}} {{"x"}}'"""
    assert heredoc in PLAIN
    file.write_text(PLAIN.replace(heredoc, SHELL_WORDS).replace('"{{max_context}}"', braces))
    harness = TomlHarness.load(file)
    content = "it's {{path}}\n$HOME \\ "
    _, arguments = harness.native_call(WriteFile("a b", content))
    run = ["bash", "-c", str(arguments["line"])]
    assert subprocess.run(run, cwd=file.parent, check=True).returncode == 0
    assert (file.parent / "a b").read_text() == content
    launch = harness.launch("x", base_url="http://x:1/v1", profile=Profile.LEAN, max_context=9)
    assert launch.home_files["more.txt"] == 'http://x:1 {{task}} {{ a | shell }} {{"x"}}'


def test_a_call_can_end_the_oracles_session(file: Path) -> None:
    assert TomlHarness.load(file).finishing_call() is None
    assert oracle_replies(CHAT, TomlHarness.load(file), [Shell("ls")])[-1] == FINAL_TEXT
    finish = """[tools.finish]\nname = "sh"\narguments = { line = "exit" }\n[lean]"""
    file.write_text(PLAIN.replace("[lean]", finish))
    replies = oracle_replies(CHAT, TomlHarness.load(file), [Shell("ls")])
    assert replies == [CHAT.write_call("sh", '{"line": "' + word + '"}') for word in ("ls", "exit")]


def test_a_run_remembers_where_the_file_lies(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    assert overrides(None, harness="plain.toml") == [f'harness.name="{file}"']
    assert overrides(None, harness="pi") == ['harness.name="pi"']


def test_what_is_missing_is_named(file: Path, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="No such file"):
        get_harness(str(tmp_path / "none.toml"))
    (tmp_path / "plain_agent.py").unlink()
    with pytest.raises(HarnessError, match=r"plain_agent\.py does not exist: install the agent"):
        TomlHarness.load(file).installed()
    a, _, z = PLAIN.partition("[tools.shell]")
    file.write_text(a + "[lean]" + z.partition("[lean]")[2])
    with pytest.raises(HarnessError, match="demonstrations need"):
        TomlHarness.load(file).native_call(Shell("ls"))


@pytest.mark.parametrize(
    ("code", "calls", "late", "end"),
    [
        (0, 2, False, SessionEnd.FINISHED),
        (3, 2, False, SessionEnd.KILLED),
        (0, 0, False, SessionEnd.NO_CALL),
        (1, 0, False, SessionEnd.INIT_FAILURE),
        (0, 2, True, SessionEnd.KILLED),
    ],
)
def test_the_end_is_read_from_clock_and_code(
    file: Path, code: int, calls: int, late: bool, end: SessionEnd
) -> None:
    result = ExecResult(code, b"", b"last words\n", late, False, 2.0)
    assert TomlHarness.load(file).end(result, model_calls=calls)[0] is end
