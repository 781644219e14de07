import pytest

from harness_adapters.config import Settings
from harness_adapters.errors import ConfigError
from harness_adapters.sweep.grid import Axis, axis, cells


def test_every_combination_is_a_cell_and_the_last_axis_is_the_fastest() -> None:
    axes = [axis("reward.bonus=0, 0.1,0.3"), axis("train.advantage=mean,rloo")]
    found = cells(axes, Settings())
    assert [cell.name for cell in found] == [
        "bonus-0_advantage-mean", "bonus-0_advantage-rloo",
        "bonus-0.1_advantage-mean", "bonus-0.1_advantage-rloo",
        "bonus-0.3_advantage-mean", "bonus-0.3_advantage-rloo",
    ]  # fmt: skip
    assert found[5].settings.reward.bonus == 0.3
    assert found[5].settings.train.advantage == "rloo"
    assert found[5].values == {"reward.bonus": "0.3", "train.advantage": "rloo"}
    assert found[0].settings == Settings().model_copy(
        update={"reward": Settings().reward.model_copy(update={"bonus": 0.0})}
    )


def test_settings_that_no_axis_names_are_those_given() -> None:
    begin = Settings.model_validate({"train": {"steps": 3}, "harness": {"name": "opencode"}})
    (lean, stock) = cells([axis("harness.profile=lean,stock")], begin)
    assert (lean.settings.harness.profile, stock.settings.harness.profile) == ("lean", "stock")
    assert {cell.settings.harness.name for cell in (lean, stock)} == {"opencode"}
    assert {cell.settings.train.steps for cell in (lean, stock)} == {3}


def test_commas_inside_brackets_and_quotes_part_nothing() -> None:
    text = """lora.targets=["q_proj","v_proj"],"all-linear",['a,b']"""
    assert axis(text) == Axis(
        "lora.targets", ("""["q_proj","v_proj"]""", '"all-linear"', "['a,b']")
    )
    found = cells([axis(text)], Settings())
    assert found[0].settings.lora.targets == ["q_proj", "v_proj"]
    assert found[1].settings.lora.targets == "all-linear"
    assert [cell.name for cell in found] == [
        "targets-q_proj-v_proj", "targets-all-linear", "targets-a-b"
    ]  # fmt: skip


def test_names_stay_apart() -> None:
    found = cells([axis("train.seed=1,2"), axis("warm_start.seed=1")], Settings())
    assert [cell.name for cell in found] == [
        "train-seed-1_warm_start-seed-1", "train-seed-2_warm_start-seed-1"
    ]  # fmt: skip
    alike = cells([axis("lora.targets='a b','a/b'")], Settings())
    assert [cell.name for cell in alike] == ["targets-a-b", "targets-a-b~2"]
    long = cells([axis(f"lora.targets={'x' * 300},{'x' * 301}")], Settings())
    assert len({cell.name for cell in long}) == 2
    assert all(len(cell.name) < 110 for cell in long)


@pytest.mark.parametrize(
    ("over", "says"),
    [
        ([], "name a setting, such as --over"),
        (["reward.bonus"], "write section.key=value,value"),
        (["reward.bonus=0,,1"], "write section.key=value,value"),
        (["reward.bonus=0,0"], "a value stands twice"),
        (["reward.bonus=0,0.0"], "is the same as bonus-0: name it once"),
        (["reward.bonus=0", "reward.bonus=1"], "named twice; give all its values at once"),
        (["reward.bonsu=0"], "no such setting; there are bonus, call_budget, fault_cost"),
        (["bonus=0"], "no such setting; there are budget, concurrency,"),
        (["reward.bonus=-1"], "reward.bonus: Input should be greater than or equal to 0"),
        (["train.advantage=mine"], "train.advantage: Input should be 'mean'"),
        (["eval.temperature=0,1"], "changes nothing that is learnt; give it with --set"),
        (["engine.threads=1,2"], "changes nothing that is learnt"),
    ],
)
def test_what_makes_no_grid_is_said_in_one_line(over: list[str], says: str) -> None:
    with pytest.raises(ConfigError) as error:
        cells([axis(one) for one in over], Settings())
    assert says in str(error.value)
    assert "\n" not in str(error.value)
