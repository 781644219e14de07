from __future__ import annotations

import dataclasses

import pytest

from harness_adapters.records import Decision, SessionEnd, Verdict


def test_infrastructure_failures_have_no_score() -> None:
    unscorable = {end for end in SessionEnd if not end.scorable}
    assert unscorable == {SessionEnd.API_ERROR, SessionEnd.INIT_FAILURE, SessionEnd.NO_CALL}


def test_records_do_not_change() -> None:
    verdict = Verdict(Decision.ALLOW, "none")
    with pytest.raises(dataclasses.FrozenInstanceError):
        verdict.rule = "other"  # type: ignore[misc]  # the mistake under test
