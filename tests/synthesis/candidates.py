"""Hand-made candidates: one sound one of each kind, to be spoiled by the tests."""

from __future__ import annotations

from harness_adapters.synthesis.candidate import (
    Candidate,
    Check,
    CheckKind,
    Provenance,
    TaskType,
)

PROVENANCE = Provenance("own.jsonl", "pi", "session-1", "Apache-2.0", 0, 3)

BROKEN = b'''\
"""Money in cents."""


def split(total, people):
    """Shares of a bill that add up to the total; the first ones are a cent larger."""
    share = total // people
    rest = total % people
    return [share + 1 if i <= rest else share for i in range(people)]


def label(cents):
    """`1234` becomes `12.34`."""
    return f"{cents // 100}.{cents % 100:02d}"
'''
FIXED = BROKEN.replace(b"i <= rest", b"i < rest")
TESTS = b"""\
import unittest

from bill import label, split


class BillTest(unittest.TestCase):
    def test_shares_add_up(self):
        self.assertEqual(split(100, 3), [34, 33, 33])
        self.assertEqual(sum(split(1001, 7)), 1001)

    def test_even(self):
        self.assertEqual(split(90, 3), [30, 30, 30])

    def test_label(self):
        self.assertEqual(label(1234), "12.34")
"""
INSTRUCTION = (
    "Shares of a bill don't add up: splitting 90 cents among three people gives a cent too much. "
    "Find out why and correct bill.py."
)


def repair(**changes: object) -> Candidate:
    """A bug in Python that unittest finds."""
    values: dict[str, object] = {
        "type": TaskType.REPAIR,
        "instruction": INSTRUCTION,
        "before": {"bill.py": BROKEN, "README.md": b"# Bills\n"},
        "after": {"bill.py": FIXED},
        "hidden": {"test_bill.py": TESTS},
        "check": Check(
            CheckKind.PYTHON_TESTS, "python3 -m unittest", failure="FAILED (failures=2)"
        ),
        "provenance": PROVENANCE,
        "later": "It was an off-by-one: the comparison must be strict.",
    }
    return Candidate(**(values | changes))  # type: ignore[arg-type]


def output(**changes: object) -> Candidate:
    """A script that prints the wrong thing."""
    values: dict[str, object] = {
        "type": TaskType.REPAIR,
        "instruction": "`python3 totals.py` stops with a KeyError. Make it print the total of "
        "each city in sales.csv, sorted by name, as `city: total`.",
        "before": {
            "totals.py": TOTALS.replace(b'totals.get(row["city"], 0)', b'totals[row["city"]]'),
            "sales.csv": b"city,amount\nRome,117\nOslo,205\nRome,391\n",
        },
        "after": {"totals.py": TOTALS},
        "check": Check(CheckKind.OUTPUT, "python3 totals.py", "Oslo: 205\nRome: 508\n", "KeyError"),
        "provenance": PROVENANCE,
    }
    return Candidate(**(values | changes))  # type: ignore[arg-type]


TOTALS = b"""\
import csv

totals = {}
with open("sales.csv") as file:
    for row in csv.DictReader(file):
        totals[row["city"]] = totals.get(row["city"], 0) + int(row["amount"])
for city in sorted(totals):
    print(f"{city}: {totals[city]}")
"""


def question(**changes: object) -> Candidate:
    """A fact computed from data."""
    values: dict[str, object] = {
        "type": TaskType.QA,
        "instruction": "What is the sum of the amounts in sales.csv for Rome? "
        "Write only the number to answer.txt.",
        "before": {"sales.csv": b"city,amount\nRome,117\nOslo,205\nRome,391\n"},
        "after": {},
        "check": Check(CheckKind.ANSWER, expected="508"),
        "oracle_command": "awk -F, '$1 == \"Rome\" {s += $2} END {print s}' sales.csv",
        "data": ("sales.csv",),
        "provenance": PROVENANCE,
    }
    return Candidate(**(values | changes))  # type: ignore[arg-type]
