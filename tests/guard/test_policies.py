import re

import pytest

from harness_adapters.guard import ProposedCall
from harness_adapters.guard.policies import AllowAll, DenyPatterns, DenyRule
from harness_adapters.records import Decision

POLICY = DenyPatterns(
    [
        DenyRule("no-rm", re.compile(r"\brm\b"), "deleting is not allowed"),
        DenyRule("no-tests", re.compile(r"/tests/"), "tests are off limits"),
    ]
)


def judge(policy, arguments):
    return policy.judge(ProposedCall("s", "t", "pi", 0, "bash", arguments, "/app"))


def test_allow_all_allows():
    assert judge(AllowAll(), '{"command": "rm -rf /"}').decision is Decision.ALLOW


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ('{"command": "rm x"}', "no-rm"),
        ('{"command": "\\u0072m x"}', "no-rm"),
        ('{"edits": [{"oldText": "a", "newText": "/tests/"}]}', "no-tests"),
        ('{"rm": 1}', "no-rm"),
        ("{broken rm", "no-rm"),
        ("[" * 100_000 + "rm ", "no-rm"),
    ],
)
def test_patterns_are_found_in_decoded_strings_and_in_raw_text(arguments, rule):
    verdict = judge(POLICY, arguments)
    assert (verdict.decision, verdict.rule) == (Decision.BLOCK, rule)


@pytest.mark.parametrize("arguments", ['{"command": "ls arm"}', "{}", "", "[1, null]"])
def test_the_rest_passes(arguments):
    assert judge(POLICY, arguments).decision is Decision.ALLOW
