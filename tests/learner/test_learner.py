"""A learner on a tiny model: versions, resuming, idempotence, and that it learns."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from harness_adapters.config import LoraSettings, ModelSettings, Settings, TrainSettings
from harness_adapters.errors import LearnerError, ModelError
from harness_adapters.learner.learner import Learner
from harness_adapters.records import Rollout

from .builders import rollout, save_tiny, session, turn


def settings(dtype: str = "float32", **train: object) -> Settings:
    values = {
        "learning_rate": 0.01,
        "temperature": 1.0,
        "ratio_min": 0.0,
        "ratio_max": 1e9,
        "min_signal": 0.001,
    }
    return Settings(
        model=ModelSettings(dtype=dtype),  # type: ignore[arg-type]  # a literal
        lora=LoraSettings(rank=4, alpha=8),
        train=TrainSettings(**(values | train)),  # type: ignore[arg-type]  # by name
    )


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    return save_tiny(tmp_path / "model")


def some_rollouts(step: int) -> list[Rollout]:
    rng = random.Random(step)
    return [
        rollout(
            f"s{step}-{group}-{attempt}",
            session(rng, [1, 2, 3, 4, 5, 6, group], turns=2, fork=attempt == 2),
            reward=float(attempt % 2),
            correct=attempt % 2 == 1,
            group=f"s{step}-{group}",
            version=max(0, step - 1),
        )
        for group in range(2)
        for attempt in range(4)
    ]


def weights(path: Path) -> dict[str, torch.Tensor]:
    return load_file(str(path / "adapter_model.safetensors"))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_resumed_run_equals_an_uninterrupted_one_bit_by_bit(
    tmp_path: Path, model_dir: Path, dtype: str
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    learner = Learner(whole, "pi", model_dir, settings(dtype))
    learner.publish()
    for step in range(1, 5):
        learner.update(step, some_rollouts(step))
    for steps in ([1, 2], [3], [4]):  # three processes' worth
        resumed = Learner(broken, "pi", model_dir, settings(dtype))
        for step in steps:
            resumed.update(step, some_rollouts(step))
    a, b = weights(whole / "adapters/pi-v4"), weights(broken / "adapters/pi-v4")
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)
    first = weights(whole / "adapters/pi-v1")
    assert any(not torch.equal(a[name], first[name]) for name in a)
    assert sorted(p.name for p in (whole / "checkpoints/pi").iterdir()) == [
        "step-000003.pt",
        "step-000004.pt",
    ]


def test_asking_again_for_a_step_answers_the_same(tmp_path: Path, model_dir: Path) -> None:
    learner = Learner(tmp_path, "pi", model_dir, settings())
    first = learner.update(1, some_rollouts(1))
    second = learner.update(2, some_rollouts(2))
    again = Learner(tmp_path, "pi", model_dir, settings())
    assert again.update(1, []) == first
    assert again.update(2, []) == second
    assert (again.step, again.version) == (2, 2)
    with pytest.raises(LearnerError, match="step 0 was never trained"):
        again.update(0, [])
    with pytest.raises(LearnerError, match="the checkpoint holds step 2; give step 3 first"):
        again.update(4, some_rollouts(4))


def test_steps_may_start_at_zero(tmp_path: Path, model_dir: Path) -> None:
    learner = Learner(tmp_path, "pi", model_dir, settings())
    first = learner.update(0, some_rollouts(1))
    assert first.adapter == "pi-v1"
    again = Learner(tmp_path, "pi", model_dir, settings())
    assert (again.step, again.update(0, [])) == (0, first)


def test_a_kill_between_publishing_and_the_checkpoint_is_repaired(
    tmp_path: Path, model_dir: Path
) -> None:
    learner = Learner(tmp_path, "pi", model_dir, settings())
    learner.update(1, some_rollouts(1))
    learner.update(2, some_rollouts(2))
    expected = weights(tmp_path / "adapters/pi-v2")
    (tmp_path / "checkpoints/pi/step-000002.pt").unlink()
    half = tmp_path / "adapters/pi-v2/adapter_model.safetensors"
    half.unlink()  # `expected` maps it
    half.write_bytes(b"half")
    again = Learner(tmp_path, "pi", model_dir, settings())
    assert again.step == 1
    result = again.update(2, some_rollouts(2))
    found = weights(tmp_path / "adapters" / result.adapter)
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_weak_signal_leaves_the_version(tmp_path: Path, model_dir: Path) -> None:
    learner = Learner(tmp_path, "pi", model_dir, settings())
    name, path = learner.publish()
    same = [rollout(f"r{i}", [turn([1, 2], [3])], reward=1.0) for i in range(4)]
    result = learner.update(1, same)
    assert (result.adapter, result.version, name) == ("pi-v0", 0, "pi-v0")
    assert result.metrics["skipped"] == 1
    assert path.is_dir()
    assert learner.update(2, some_rollouts(1)).adapter == "pi-v1"


def test_a_step_without_signal_is_checkpointed_too(tmp_path: Path, model_dir: Path) -> None:
    learner = Learner(tmp_path, "pi", model_dir, settings())
    same = [rollout(f"r{i}", [turn([1, 2], [3])], reward=1.0) for i in range(4)]
    results = [learner.update(step, same) for step in (1, 2)]
    results.append(learner.update(3, some_rollouts(1)))
    again = Learner(tmp_path, "pi", model_dir, settings())
    assert (again.step, again.version) == (3, 1)
    assert [again.update(step, []) for step in (1, 2, 3)] == results


def test_scores_are_at_the_temperature_of_training(tmp_path: Path, model_dir: Path) -> None:
    learner = Learner(tmp_path, "pi", model_dir, settings(temperature=0.5))
    model = AutoModelForCausalLM.from_pretrained(str(model_dir))
    with torch.no_grad():
        logits = model(torch.tensor([[1, 2, 3, 4, 5]])).logits[0, 2:4] / 0.5
    expected = [
        float(row[token]) for row, token in zip(logits.log_softmax(-1), (4, 5), strict=True)
    ]
    assert learner.logprobs([([1, 2, 3], [4, 5])], None)[0] == pytest.approx(expected, abs=1e-5)


def test_an_untrained_adapter_changes_nothing(tmp_path: Path, model_dir: Path) -> None:
    learner = Learner(tmp_path, "pi", model_dir, settings())
    _, path = learner.publish()
    pairs = [([1, 2, 3], [4, 5]), ([1, 2, 9], [7])]
    assert learner.logprobs(pairs, None) == learner.logprobs(pairs, path)


def test_published_adapters_load_in_peft_and_agree(tmp_path: Path, model_dir: Path) -> None:
    learner = Learner(tmp_path, "pi", model_dir, settings())
    paths = [tmp_path / "adapters" / learner.update(s, some_rollouts(s)).adapter for s in (1, 2)]
    pairs = [([1, 2, 3], [4, 5]), ([1, 2, 9, 9], [7])]
    for path in (paths[0], None, paths[1]):
        model = AutoModelForCausalLM.from_pretrained(str(model_dir))
        if path is not None:
            model = PeftModel.from_pretrained(model, str(path))
        for (prompt, output), found in zip(pairs, learner.logprobs(pairs, path), strict=True):
            with torch.no_grad():
                logits = model(torch.tensor([prompt + output])).logits[0].log_softmax(-1)
            expected = [float(logits[len(prompt) + k - 1, token]) for k, token in enumerate(output)]
            assert found == pytest.approx(expected, abs=1e-5)
    # scoring other adapters leaves the learner's own state alone
    assert learner.publish()[0] == "pi-v2"
    third = learner.update(3, some_rollouts(3))
    other = Learner(tmp_path / "other", "pi", model_dir, settings())
    for step in (1, 2, 3):
        last = other.update(step, some_rollouts(step))
    assert third.metrics["loss"] == last.metrics["loss"]


@pytest.mark.parametrize("loss", ["cispo", "grpo", "dapo", "gspo"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rewarded_tokens_become_likelier(
    tmp_path: Path, model_dir: Path, loss: str, dtype: str
) -> None:
    learner = Learner(tmp_path, "pi", model_dir, settings(dtype, loss=loss, synchronous=True))
    prompts = [[1, 2, 3], [1, 2, 4]]
    good, bad = [10, 11], [20, 21]

    def chance(output: list[int], adapter: Path | None) -> list[float]:
        return [sum(x) for x in learner.logprobs([(p, output) for p in prompts], adapter)]

    path: Path | None = None
    before = chance(good, None), chance(bad, None)
    for step in range(1, 7):
        rollouts = []
        for output, reward in ((good, 1.0), (bad, 0.0)):
            for prompt, old in zip(
                prompts, learner.logprobs([(p, output) for p in prompts], path), strict=True
            ):
                name = f"{step}-{prompt[-1]}"
                rollouts.append(
                    rollout(
                        f"{name}-{reward}",
                        [turn(prompt, output, logprobs=old)],
                        reward=reward,
                        correct=reward == 1,
                        group=name,
                        version=step - 1,
                    )
                )
        result = learner.update(step, rollouts)
        path = learner.adapter_path(result.adapter)
        assert result.metrics["sampling/importance_sampling_ratio/mean"] == pytest.approx(
            1, abs=0.05 if dtype == "bfloat16" else 1e-3
        )
    after = chance(good, path), chance(bad, path)
    assert all(a > b + 0.5 for a, b in zip(after[0], before[0], strict=True))
    assert all(a < b for a, b in zip(after[1], before[1], strict=True))


def test_the_brake_holds_the_policy_near_its_base(tmp_path: Path, model_dir: Path) -> None:
    """Many steps towards the same answer: with `beta` the policy ends nearer to the base."""
    prompt, good, bad = [1, 2, 3], [10, 11], [20, 21]
    distance = {}
    for beta in (0.0, 1.0):
        learner = Learner(tmp_path / str(beta), "pi", model_dir, settings(beta=beta))
        pairs = [(prompt, good), (prompt, bad)]
        base = learner.logprobs(pairs, None)
        path: Path | None = None
        for step in range(1, 9):
            scored = zip(pairs, learner.logprobs(pairs, path), (1.0, 0.0), strict=True)
            result = learner.update(
                step,
                [
                    rollout(
                        f"{step}-{reward}",
                        [turn(prompt, output, logprobs=old)],
                        reward=reward,
                        correct=reward == 1,
                        group=str(step),
                        version=step - 1,
                    )
                    for (_, output), old, reward in scored
                ],
            )
            path = learner.adapter_path(result.adapter)
            if step == 1:  # the adapter changes nothing yet
                assert result.metrics.get("kl_base", 0.0) == pytest.approx(0, abs=1e-9)
        last = result.metrics.get("kl_base")
        assert (last is None) == (beta == 0)
        assert last is None or last > 0.01
        new = learner.logprobs(pairs, path)
        distance[beta] = sum(new[0]) - sum(base[0]), sum(base[1]) - sum(new[1])
    assert 0.2 < distance[1.0][0] < 0.6 * distance[0.0][0]
    assert distance[1.0][1] < 0.6 * distance[0.0][1]


def test_metrics_have_trl_names(tmp_path: Path, model_dir: Path) -> None:
    metrics = Learner(tmp_path, "pi", model_dir, settings()).update(1, some_rollouts(1)).metrics
    for name in (
        "reward", "reward_std", "frac_reward_zero_std", "kl", "entropy", "loss", "grad_norm",
        "learning_rate", "clip_ratio/region_mean", "completions/mean_length",
        "sampling/importance_sampling_ratio/mean", "sampling/sampling_logp_difference/max",
    ):  # fmt: skip
        assert name in metrics
    raw, merged = metrics["tokens/raw"], metrics["tokens/merged"]
    assert raw > merged > metrics["tokens/distinct"] >= metrics["tokens/trained"] > 0


def test_what_does_not_fit_is_one_clear_line(tmp_path: Path, model_dir: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json"):
        Learner(tmp_path, "pi", tmp_path / "nowhere", settings())
    learner = Learner(tmp_path, "pi", model_dir, settings())
    learner.update(1, some_rollouts(1))
    other = settings().model_copy(update={"lora": LoraSettings(rank=8)})
    with pytest.raises(LearnerError, match="doesn't fit this model and lora settings"):
        Learner(tmp_path, "pi", model_dir, other)
    (tmp_path / "checkpoints/pi/step-000001.pt").write_bytes(b"damaged")
    with pytest.raises(LearnerError, match="can't be read"):
        Learner(tmp_path, "pi", model_dir, settings())
    with pytest.raises(ModelError, match=r"lora\.targets"):
        Learner(
            tmp_path / "x", "pi", model_dir,
            settings().model_copy(update={"lora": LoraSettings(targets=["nothing"])}),
        )  # fmt: skip


def test_two_iterations_are_two_steps_on_the_same_rollouts(tmp_path: Path, model_dir: Path) -> None:
    once = Learner(tmp_path / "once", "pi", model_dir, settings())
    twice = Learner(tmp_path / "twice", "pi", model_dir, settings(num_iterations=2))
    one, two = (learner.update(1, some_rollouts(1)) for learner in (once, twice))
    assert (one.version, two.version) == (1, 1)
    for name in ("loss", "grad_norm", "sampling/importance_sampling_ratio/mean"):
        assert two.metrics[name] == one.metrics[name], "what is told is the first iteration's"
    first, second = (weights(tmp_path / where / "adapters/pi-v1") for where in ("once", "twice"))
    assert any(not torch.equal(first[name], second[name]) for name in first)
    # Another step on the same rollouts, by hand: they are not too old for version 1.
    by_hand = once.update(2, some_rollouts(1))
    assert by_hand.metrics["kl"] == pytest.approx(two.metrics["kl/last_iteration"], rel=1e-6)
    third = weights(tmp_path / "once/adapters/pi-v2")
    assert all(torch.allclose(third[name], second[name], atol=1e-7) for name in third)
