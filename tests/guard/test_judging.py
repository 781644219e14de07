import asyncio
import json
import time
from dataclasses import replace

import pytest

from harness_adapters.errors import StoreError
from harness_adapters.guard import ProposedCall
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.judging import TIMED_OUT, judge, notice
from harness_adapters.guard.policies import AllowAll
from harness_adapters.records import Conduct, Decision, Verdict

CALL = ProposedCall("s", "t", "pi", 0, "bash", '{"command": "rm x"}', "/app")


@pytest.mark.parametrize(
    "answer", [None, True, "allow", Verdict("allow", "a string"), KeyError("broken")]
)
async def test_only_a_verdict_is_a_verdict(tmp_path, answer):
    class Odd:
        def judge(self, call):
            if isinstance(answer, Exception):
                raise answer
            return answer

    log = AuditLog(tmp_path / "audit.jsonl")
    verdict = await judge(Odd(), log, CALL, "call")
    assert (verdict.decision, verdict.rule) == (Decision.BLOCK, "guard-error")
    assert '"guard-error"' in log.path.read_text()


async def test_there_is_no_verdict_without_its_line(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl")
    log.path.unlink()
    with pytest.raises((StoreError, OSError)):
        await judge(AllowAll(), log, CALL, "call")


LARGE = replace(CALL, arguments='{"command": "' + "x" * 5000 + '"}')


@pytest.mark.parametrize("call", [CALL, LARGE])
async def test_a_verdict_that_only_goes_on_record_is_a_flag(tmp_path, call):
    class No:
        def judge(self, call):
            return Verdict(Decision.BLOCK, "no", "never", "tests", Conduct.CHEAT)

    log = AuditLog(tmp_path / "audit.jsonl")
    verdict = await judge(No(), log, call, "call", enforced=False)
    assert verdict == Verdict(Decision.FLAG, "no", "never", "tests", Conduct.CHEAT)
    line = json.loads(log.path.read_text())
    assert (line["decision"], line["enforced"]) == ("block", False)


async def test_a_long_analysis_stops_nobody_and_ends_in_a_block(tmp_path):
    class Slow:
        def judge(self, call):
            time.sleep(0.5)
            return Verdict(Decision.ALLOW, "late")

    log, ticks = AuditLog(tmp_path / "audit.jsonl"), 0
    judging = asyncio.create_task(judge(Slow(), log, LARGE, "call", seconds=0.2))
    while not judging.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks > 5
    assert (await judging).rule == TIMED_OUT


def test_a_notice_says_what_and_why_in_one_line():
    blocked = Verdict(Decision.BLOCK, "rule", "because")
    assert notice("bash", blocked) == "[bash was blocked and not run: because]"
    assert notice("", Verdict(Decision.BLOCK, "rule")) == "[The call was blocked and not run: rule]"
    odd = notice("a\n\x1b[31m" + "b" * 500, blocked)
    assert "\n" not in odd
    assert "\x1b" not in odd
    assert len(odd) < 120
