import pytest

from harness_adapters.config import PriceSettings
from harness_adapters.evaluation.compare import compare
from harness_adapters.evaluation.cost import BETWEEN, ledger, money
from harness_adapters.records import Phase, Rollout
from harness_adapters.store import Usage

from .conftest import MakeRollout


@pytest.fixture
def sessions(make_rollout: MakeRollout) -> list[Rollout]:
    """Two training sessions one after another, four test sessions two by two; 6 s each."""
    train = {"phase": Phase.TRAIN, "timings": {"cpu": 2.0}}
    return [
        make_rollout("pi", "a-1", True, started=0.0, **train),
        make_rollout("pi", "a-2", False, started=6.0, **train),
        make_rollout("base", "a-3", False, started=20.0),
        make_rollout("pi", "a-3", True, started=20.0),
        make_rollout("base", "a-4", True, started=26.0),
        make_rollout("pi", "a-4", True, started=26.0),
    ]


def usage_of(sessions: list[Rollout]) -> dict[str, Usage]:
    """The base takes the engine 1 s, everybody else 3 s."""
    return {r.id: Usage(1.0 if r.arm == "base" else 3.0, 1000, 400, 50) for r in sessions}


def test_a_ledger_worked_out_by_hand(sessions: list[Rollout]) -> None:
    price = PriceSettings(engine_hour=3600, cpu_hour=1800, million_prompt=100, million_output=1000)
    result = compare(sessions, base="base", treatment="pi")
    found = ledger(sessions, usage_of(sessions), price, seconds=40, comparison=result)
    train, base, pi, rest = found.entries
    assert (train.phase, base.arm, pi.arm, rest.phase) == ("train", "base", "pi", BETWEEN)
    assert (train.sessions, train.solved, train.engine_seconds) == (2, 1, 6.0)
    assert (train.prompt_tokens, train.cached_tokens, train.output_tokens) == (2000, 800, 100)
    # 12 s of test sessions by the clock, shared 2 : 6; a second of the engine costs a dollar.
    assert (train.clock_seconds, base.clock_seconds, pi.clock_seconds) == (12, 3, 9)
    assert rest.clock_seconds == 40 - 24
    tokens = 1200 / 1e6 * 100 + 100 / 1e6 * 1000
    assert train.dollars == pytest.approx(12 + 4 / 3600 * 1800 + tokens)
    assert base.dollars_per_session == pytest.approx((3 + tokens) / 2)
    assert base.dollars_per_solved == pytest.approx(3 + tokens)
    assert found.total.dollars == pytest.approx(40 + 2 + 3 * tokens)
    assert found.dollars_per_point == pytest.approx((42 + 3 * tokens) / 50)
    assert [e.phase for e in found.by_phase()] == ["train", "test", BETWEEN]
    assert found.by_phase()[1].sessions == 4


def test_without_prices_there_are_no_dollars(sessions: list[Rollout]) -> None:
    found = ledger(sessions, {}, PriceSettings())
    assert found.total.dollars is None
    assert found.dollars_per_point is None
    # What is not known of the engine is shared out by sessions.
    assert [e.clock_seconds for e in found.entries] == [12, 6, 6]


def test_nothing_gained_has_no_price_per_point(sessions: list[Rollout]) -> None:
    price = PriceSettings(engine_hour=1)
    result = compare(sessions, base="pi", treatment="base")
    assert ledger(sessions, {}, price, comparison=result).dollars_per_point is None


@pytest.mark.parametrize(
    ("dollars", "text"), [(0, "$0.00"), (0.0042, "$0.0042"), (0.351, "$0.35"), (1234.5, "$1,234")]
)
def test_money(dollars: float, text: str) -> None:
    assert money(dollars) == text
