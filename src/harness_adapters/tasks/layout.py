"""Files that are alike in every task that this project writes."""

from __future__ import annotations

DOCKERFILE = """\
FROM python:3.11-slim
WORKDIR /app
COPY files/ /app/
"""


def verifier_script(checker: str) -> str:
    """`tests/test.sh` for a checker, a Python file beside it that writes the reward."""
    return f"""\
#!/bin/bash
# The reward is 0 until {checker} says otherwise.
echo 0 > /logs/verifier/reward.txt
python3 -I /tests/{checker} /app /logs/verifier/reward.txt
"""
