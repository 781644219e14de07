import pytest

from harness_adapters.errors import StoreError
from harness_adapters.guard import ProposedCall
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.judging import judge, notice
from harness_adapters.guard.policies import AllowAll
from harness_adapters.records import Decision, Verdict

CALL = ProposedCall("s", "t", "pi", 0, "bash", '{"command": "rm x"}', "/app")


@pytest.mark.parametrize(
    "answer", [None, True, "allow", Verdict("allow", "a string"), KeyError("broken")]
)
def test_only_a_verdict_is_a_verdict(tmp_path, answer):
    class Odd:
        def judge(self, call):
            if isinstance(answer, Exception):
                raise answer
            return answer

    log = AuditLog(tmp_path / "audit.jsonl")
    verdict = judge(Odd(), log, CALL, "call")
    assert (verdict.decision, verdict.rule) == (Decision.BLOCK, "guard-error")
    assert '"guard-error"' in log.path.read_text()


def test_there_is_no_verdict_without_its_line(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl")
    log.path.unlink()
    with pytest.raises((StoreError, OSError)):
        judge(AllowAll(), log, CALL, "call")


def test_a_notice_says_what_and_why_in_one_line():
    blocked = Verdict(Decision.BLOCK, "rule", "because")
    assert notice("bash", blocked) == "[bash was blocked and not run: because]"
    assert notice("", Verdict(Decision.BLOCK, "rule")) == "[The call was blocked and not run: rule]"
    odd = notice("a\n\x1b[31m" + "b" * 500, blocked)
    assert "\n" not in odd
    assert "\x1b" not in odd
    assert len(odd) < 120
