"""Small projects, and what a model does on them: the script of each recorded session.

Each request is one prompt to the agent; a session goes on with the next. Actions are those of the
task format, so that every agent plays them with its own tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness_adapters.tasks import Action, Edit, Shell, WriteFile

TEST = Shell("python3 -m unittest")


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asks, what the model does, what it says in the end."""

    prompt: str
    actions: tuple[Action, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class Project:
    """One session."""

    name: str
    harness: str
    requests: tuple[Request, ...]
    files: Mapping[str, str] = field(default_factory=dict[str, str])


_BILL = '''\
"""Sharing a bill."""


def shares(total, people):
    """What each of `people` pays, in cents; the shares add up to `total`."""
    share = total // people
    rest = total % people
    return [share + 1 if number <= rest else share for number in range(people)]


def label(cents):
    """An amount as people write it: 1234 is 12.34."""
    return f"{cents // 100}.{cents % 100:02d}"
'''
_BILL_TEST = """\
import unittest

from bill import label, shares


class BillTest(unittest.TestCase):
    def test_shares_of_an_even_bill(self):
        self.assertEqual(shares(90, 3), [30, 30, 30])

    def test_the_first_pay_the_rest(self):
        self.assertEqual(shares(1003, 4), [251, 251, 251, 250])

    def test_one_pays_all(self):
        self.assertEqual(shares(77, 1), [77])

    def test_label(self):
        self.assertEqual(label(1234), "12.34")
        self.assertEqual(label(5), "0.05")


if __name__ == "__main__":
    unittest.main()
"""

REPAIR_BILL = Project(
    "bill",
    "opencode",
    (
        Request(
            "When three people share 90 cents, one of them pays 31. Find out why bill.py does "
            "that and correct it; the tests must pass.",
            (
                TEST,
                Shell("cat bill.py"),
                Shell("cat test_bill.py"),
                Edit("bill.py", "number <= rest", "number < rest"),
                TEST,
            ),
            "The comparison counted one person too many; the shares add up now.",
        ),
    ),
    {"bill.py": _BILL, "test_bill.py": _BILL_TEST},
)

_INTERVALS = '''\
"""Closed intervals of whole numbers, as pairs."""


def merge(intervals):
    """The same numbers in as few intervals as possible, sorted; neighbours are joined."""
    merged = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return [tuple(pair) for pair in merged]


def covers(intervals, number):
    """Whether a number lies in one of the intervals."""
    return any(low <= number <= high for low, high in intervals)
'''
_INTERVALS_TEST = """\
import unittest

from intervals import covers, merge


class IntervalsTest(unittest.TestCase):
    def test_apart(self):
        self.assertEqual(merge([(7, 9), (1, 2)]), [(1, 2), (7, 9)])

    def test_overlap_and_neighbours(self):
        self.assertEqual(merge([(1, 4), (3, 6), (7, 8)]), [(1, 8)])

    def test_one_inside_another(self):
        self.assertEqual(merge([(1, 20), (3, 4), (12, 14)]), [(1, 20)])

    def test_a_gap_of_one_number_stays(self):
        self.assertEqual(merge([(1, 2), (4, 5)]), [(1, 2), (4, 5)])

    def test_covers(self):
        self.assertIs(covers([(1, 2), (7, 9)], 9), True)
        self.assertIs(covers([(1, 2), (7, 9)], 7), True)
        self.assertIs(covers([(1, 2), (7, 9)], 4), False)
        self.assertIs(covers([], 1), False)
"""
_SUBTRACT = '''\


def subtract(intervals, hole):
    """The intervals without the numbers of `hole`, in the same order; empty ones are left out."""
    first, last = hole
    left = []
    for low, high in intervals:
        if low < first:
            left.append((low, min(high, first - 1)))
        if high > last:
            left.append((max(low, last + 1), high))
    return left
'''
_SUBTRACT_TEST = """\
import unittest

from intervals import subtract


class SubtractTest(unittest.TestCase):
    def test_in_the_middle(self):
        self.assertEqual(subtract([(1, 10)], (4, 6)), [(1, 3), (7, 10)])

    def test_all_of_one_and_a_part_of_the_next(self):
        self.assertEqual(subtract([(1, 3), (5, 9)], (0, 6)), [(7, 9)])

    def test_beside(self):
        self.assertEqual(subtract([(1, 3), (8, 9)], (4, 7)), [(1, 3), (8, 9)])

    def test_at_the_edges(self):
        self.assertEqual(subtract([(1, 5)], (1, 1)), [(2, 5)])
        self.assertEqual(subtract([(1, 5)], (5, 8)), [(1, 4)])
"""

BUILD_INTERVALS = Project(
    "intervals",
    "pi",
    (
        Request(
            "Write intervals.py: closed intervals of whole numbers as pairs. merge(intervals) "
            "joins those that overlap or are neighbours and sorts them; covers(intervals, number) "
            "says whether a number lies in one. Add tests and run them.",
            (
                WriteFile("intervals.py", _INTERVALS),
                WriteFile("test_intervals.py", _INTERVALS_TEST),
                TEST,
            ),
            "Both functions are there, and their tests pass.",
        ),
        Request(
            "Now add subtract(intervals, hole) to intervals.py: it takes the numbers of one "
            "interval out of a list of them, which may shorten, split or remove an interval.",
            (
                Shell("cat intervals.py"),
                WriteFile("intervals.py", _INTERVALS + _SUBTRACT),
                WriteFile("test_subtract.py", _SUBTRACT_TEST),
                TEST,
            ),
            "subtract is there, with tests for each case.",
        ),
    ),
)

_SALES = """\
day,city,amount
2031-03-01,Turku,1290
2031-03-01,Oulu,845
2031-03-02,Turku,77
2031-03-02,Vaasa,3110
2031-03-03,Oulu,1904
2031-03-04,Turku,2056
2031-03-04,Vaasa,18
2031-03-05,Oulu,630
2031-03-06,Turku,999
2031-03-07,Vaasa,2471
"""

ASK_SALES = Project(
    "sales",
    "hermes",
    (
        Request(
            "What is the sum of all amounts for Turku in sales.csv?",
            (
                Shell("cat sales.csv"),
                Shell("awk -F, '$2 == \"Turku\" {sum += $3} END {print sum}' sales.csv"),
            ),
            "The amounts for Turku add up to 4422.",
        ),
    ),
    {"sales.csv": _SALES},
)

_LOG = "".join(
    f"{9 + number // 60:02d}:{number % 60:02d} {level} worker-{number % 7} took {ms} ms\n"
    for number, (level, ms) in enumerate(
        (("INFO", 120 + 37 * n % 911) if n % 5 else ("WARN", 2000 + 53 * n % 1777))
        for n in range(60)
    )
)

ASK_LOG = Project(
    "log",
    "pi",
    (
        Request(
            "Which was the longest time in milliseconds that any WARN line of jobs.log reports?",
            (
                Shell("cat jobs.log"),
                Shell("grep WARN jobs.log | awk '{print $5}' | sort -n | tail -1"),
            ),
            "The longest was 3590 ms.",
        ),
    ),
    {"jobs.log": _LOG},
)

_ROMAN = '''\
"""Roman numerals."""

_SIGNS = [(1000, "M"), (500, "D"), (100, "C"), (50, "L"), (10, "X"), (5, "V"), (1, "I")]


def roman(number):
    """A number from 1 to 3999 in Roman numerals; ValueError for any other."""
    text = ""
    for value, sign in _SIGNS:
        while number >= value:
            text += sign
            number -= value
    return text


def number(text):
    """The number that Roman numerals stand for."""
    values = [dict((sign, value) for value, sign in _SIGNS)[sign] for sign in text]
    total = 0
    for this, following in zip(values, values[1:] + [0]):
        total += -this if this < following else this
    return total
'''
_ROMAN_TEST = """\
import unittest

from roman import number, roman


class RomanTest(unittest.TestCase):
    def test_every_number_and_back(self):
        for each in (1, 3, 5, 8, 10, 50, 61, 100, 500, 1666, 2026, 3888):
            self.assertEqual(number(roman(each)), each)

    def test_subtraction(self):
        self.assertEqual(roman(4), "IV")
        self.assertEqual(roman(9), "IX")
        self.assertEqual(roman(1994), "MCMXCIV")
        self.assertEqual(roman(449), "CDXLIX")

    def test_limits(self):
        self.assertEqual(roman(3999), "MMMCMXCIX")
        self.assertEqual(roman(1), "I")
        for wrong in (0, -1, 4000):
            with self.assertRaises(ValueError):
                roman(wrong)
"""
_ROMAN_FIXED = _ROMAN.replace(
    """\
_SIGNS = [(1000, "M"), (500, "D"), (100, "C"), (50, "L"), (10, "X"), (5, "V"), (1, "I")]
""",
    """\
_SIGNS = [(1000, "M"), (500, "D"), (100, "C"), (50, "L"), (10, "X"), (5, "V"), (1, "I")]
_STEPS = sorted(
    [*_SIGNS, (900, "CM"), (400, "CD"), (90, "XC"), (40, "XL"), (9, "IX"), (4, "IV")], reverse=True
)
""",
).replace(
    """\
    text = ""
    for value, sign in _SIGNS:
""",
    """\
    if not 1 <= number <= 3999:
        raise ValueError(f"{number} has no Roman numerals")
    text = ""
    for value, sign in _STEPS:
""",
)

REPAIR_ROMAN = Project(
    "roman",
    "hermes",
    (
        Request(
            "roman.py writes 4 as IIII and 9 as VIIII, and it accepts 0 and 4000. Correct both "
            "and run the tests.",
            (
                TEST,
                Shell("cat roman.py"),
                Shell("cat test_roman.py"),
                WriteFile("roman.py", _ROMAN_FIXED),
                TEST,
            ),
            "Numerals are subtractive now, and numbers out of range are refused.",
        ),
    ),
    {"roman.py": _ROMAN, "test_roman.py": _ROMAN_TEST},
)

_QUEUE = '''\
"""A queue of jobs with priorities."""


class Queue:
    """Jobs come out by priority, the highest first; equal ones as they came in."""

    def __init__(self):
        self._jobs = []
        self._count = 0

    def put(self, name, priority=0):
        """Add a job."""
        self._count += 1
        self._jobs.append((-priority, self._count, name))

    def take(self):
        """Remove and return the next job's name; IndexError where there is none."""
        if not self._jobs:
            raise IndexError("no job")
        first = min(self._jobs)
        self._jobs.remove(first)
        return first[2]

    def __len__(self):
        """How many jobs wait."""
        return len(self._jobs)
'''
_QUEUE_TEST = """\
import unittest

from jobqueue import Queue


class QueueTest(unittest.TestCase):
    def test_the_highest_first(self):
        queue = Queue()
        queue.put("low", 1)
        queue.put("high", 9)
        queue.put("middle", 5)
        self.assertEqual([queue.take() for _ in range(3)], ["high", "middle", "low"])

    def test_equal_ones_in_order(self):
        queue = Queue()
        for name in ("c", "a", "b"):
            queue.put(name)
        self.assertEqual([queue.take() for _ in range(3)], ["c", "a", "b"])

    def test_default_priority_is_none(self):
        queue = Queue()
        queue.put("plain")
        queue.put("under", -1)
        queue.put("over", 1)
        queue.put("zero", 0)
        self.assertEqual([queue.take() for _ in range(4)], ["over", "plain", "zero", "under"])

    def test_length_and_end(self):
        queue = Queue()
        self.assertEqual(len(queue), 0)
        queue.put("one")
        self.assertEqual(len(queue), 1)
        queue.take()
        with self.assertRaises(IndexError):
            queue.take()
"""
_DROP = '''\

    def drop(self, name):
        """Remove all jobs of this name; how many there were."""
        kept = [job for job in self._jobs if job[2] != name]
        dropped = len(self._jobs) - len(kept)
        self._jobs = kept
        return dropped
'''
_DROP_TEST = """\
import unittest

from jobqueue import Queue


class DropTest(unittest.TestCase):
    def test_all_of_a_name(self):
        queue = Queue()
        for name in ("a", "b", "a", "c"):
            queue.put(name)
        self.assertEqual(queue.drop("a"), 2)
        self.assertEqual([queue.take(), queue.take()], ["b", "c"])
        self.assertEqual(len(queue), 0)

    def test_nothing_of_it(self):
        queue = Queue()
        queue.put("a")
        self.assertEqual(queue.drop("z"), 0)
        self.assertEqual(len(queue), 1)
"""

BUILD_QUEUE = Project(
    "queue",
    "opencode",
    (
        Request(
            "Write jobqueue.py with a class Queue: put(name, priority=0), take() and len(). The "
            "highest priority comes out first, equal ones in the order in which they came; take() "
            "on an empty queue raises IndexError. Test it.",
            (WriteFile("jobqueue.py", _QUEUE), WriteFile("test_jobqueue.py", _QUEUE_TEST), TEST),
            "The queue works as described; all tests pass.",
        ),
        Request(
            "Jobs must be cancelled, too: Queue.drop(name) removes all waiting jobs of that name "
            "and returns how many there were.",
            (
                WriteFile("jobqueue.py", _QUEUE + _DROP),
                WriteFile("test_drop.py", _DROP_TEST),
                TEST,
            ),
            "drop is there and tested.",
        ),
    ),
)

ALL = (
    REPAIR_BILL,
    BUILD_INTERVALS,
    ASK_SALES,
    ASK_LOG,
    REPAIR_ROMAN,
    BUILD_QUEUE,
)
