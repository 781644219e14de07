from __future__ import annotations

import pytest

from harness_adapters.synthesis.traces.exit_codes import stated


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Exit code 1\nboom", 1),
        ("Error: Exit code 127\nnot found", 127),
        ("Exit code: 0\nWall time: 1 seconds\nOutput:\nok", 0),
        ("Chunk ID: 22\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\n", 2),
        ("boom\n\nCommand exited with code 3", 3),
        ("boom\n<exited with exit code 4>", 4),
        ("<returncode>-15</returncode>\n<output>\n</output>", -15),
        ("\n[The command completed with exit code 5.]\n[Current working directory: /app]", 5),
        ("x\n[Python interpreter: /usr/bin/python]\n[Command finished with exit code 6]", 6),
        ('{"output": "x", "exit_code": 7, "error": null}', 7),
        ('{"output": "x", "metadata": {"exit_code": 8}}', 8),
    ],
)
def test_stated(text: str, code: int) -> None:
    assert stated(text) == code


@pytest.mark.parametrize(
    "text",
    [
        "",
        "make: Exit code 1 is what the other program said",
        "log line\nCommand exited with code 3\nbut this is not the end",
        '{"exit_code": true}',
        '{"exit_code": "7"}',
        '{"broken": ',
    ],
)
def test_words_of_a_program_decide_nothing(text: str) -> None:
    assert stated(text) is None
