from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from harness_adapters.config import WarmStartSettings
from harness_adapters.errors import LearnerError
from harness_adapters.learner.rows import turns_to_rows
from harness_adapters.learner.warm_start import _batches, learning_rate, warm_start
from harness_adapters.records import Phase, Rollout

from .builders import rollout, save_tiny, session, turn

SETTINGS = WarmStartSettings(steps=8, batch=4, learning_rate=0.003)


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    directory = save_tiny(tmp_path / "model")
    vocabulary = {f"w{i}": i for i in range(101)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(vocabulary, unk_token="w0")), eos_token="w1"
    )
    tokenizer.chat_template = "{{ messages[0]['content'] }}"
    tokenizer.save_pretrained(directory)
    (directory / "generation_config.json").write_text(json.dumps({"eos_token_id": 1}))
    return directory


@pytest.fixture
def demonstrations() -> list[Rollout]:
    rng = random.Random(0)
    return [
        rollout(f"d{i}", session(rng, list(range(30)), turns=2), phase=Phase.DEMONSTRATION)
        for i in range(6)
    ]


def test_the_loss_falls_and_the_directory_loads(
    tmp_path: Path, model_dir: Path, demonstrations: list[Rollout]
) -> None:
    seen: list[tuple[int, int, float]] = []
    result = warm_start(
        model_dir, demonstrations, SETTINGS, tmp_path / "out", dtype="float32", save_at=[3],
        progress=lambda *args: seen.append(args),
    )  # fmt: skip
    assert [s[:2] for s in seen] == [(n, 8) for n in range(1, 9)]
    assert [s[2] for s in seen] == result.losses
    assert result.losses[-1] < result.losses[0] - 1
    assert result.demonstrations == 6

    model = AutoModelForCausalLM.from_pretrained(str(result.directory))
    first = demonstrations[0].turns[0]
    ids = torch.tensor([first.prompt_ids + first.output_ids])
    before = AutoModelForCausalLM.from_pretrained(str(model_dir))
    where = slice(len(first.prompt_ids) - 1, -1)
    target = ids[0, len(first.prompt_ids) :, None]
    old, new = (
        m(ids).logits[0, where].log_softmax(-1).gather(1, target).sum() for m in (before, model)
    )
    assert new > old + 1
    assert AutoTokenizer.from_pretrained(str(result.directory)).chat_template == (
        AutoTokenizer.from_pretrained(str(model_dir)).chat_template
    )
    config = json.loads((result.directory / "generation_config.json").read_text())
    assert config == {"eos_token_id": 1}
    assert json.loads((result.directory / "config.json").read_text())["use_cache"] is True
    snapshot = AutoModelForCausalLM.from_pretrained(str(result.snapshots[3]))
    assert not torch.equal(snapshot.lm_head.weight, model.lm_head.weight)


def test_the_same_seed_gives_the_same_weights(
    tmp_path: Path, model_dir: Path, demonstrations: list[Rollout]
) -> None:
    states = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        settings = SETTINGS.model_copy(update={"steps": 3, "seed": seed})
        result = warm_start(model_dir, demonstrations, settings, tmp_path / name)
        states.append(AutoModelForCausalLM.from_pretrained(str(result.directory)).state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert any(not torch.equal(states[0][name], states[2][name]) for name in states[0])


def test_one_step_is_one_step_of_adam_on_the_mean_loss(tmp_path: Path, model_dir: Path) -> None:
    """Against a plain step written here: the whole batch, the model's own loss."""
    demos = [
        rollout(f"d{i}", [turn([1, 2, 3], [4 + i, 5])], phase=Phase.DEMONSTRATION) for i in range(2)
    ]
    settings = WarmStartSettings(steps=1, batch=2, learning_rate=0.003)
    result = warm_start(model_dir, demos, settings, tmp_path / "out", dtype="float32")
    model = AutoModelForCausalLM.from_pretrained(str(model_dir))
    ids = torch.tensor([[1, 2, 3, 4, 5], [1, 2, 3, 5, 5]])
    logprobs = model(ids).logits.log_softmax(-1)[:, 2:4].gather(2, ids[:, 3:, None])
    loss = -logprobs.mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    rate = learning_rate(0, 1, 0.003)
    torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0).step()
    assert result.losses == pytest.approx([float(loss.detach())], abs=1e-5)
    found = AutoModelForCausalLM.from_pretrained(str(result.directory)).state_dict()
    for name, expected in model.state_dict().items():
        # Adam's first step is rate * sign(gradient): compare where the sign is certain
        assert (found[name] - expected).abs().mean() < rate * 0.01, name


def test_the_rate_warms_up_holds_and_falls() -> None:
    rates = [learning_rate(s, 20, 3.0) for s in range(20)]
    assert rates[:3] == pytest.approx([1, 2, 3])
    assert rates[3:11] == [3.0] * 8
    assert rates[11:] == sorted(rates[11:], reverse=True)
    assert rates[-1] == pytest.approx(3 * (1 - 0.9 * 0.9))


def test_nothing_to_learn_from(tmp_path: Path, model_dir: Path) -> None:
    with pytest.raises(LearnerError, match="no demonstration has any turn"):
        warm_start(model_dir, [rollout("d", [])], SETTINGS, tmp_path / "out")


def test_batches_take_the_harnesses_in_turn_and_every_session_once_a_pass() -> None:
    sessions = {
        name: [turns_to_rows([turn([first, n], [7, 8])]) for n in range(10, 16)]
        for name, first in (("pi", 1), ("hermes", 2))
    }
    batches = _batches(sessions, SETTINGS.model_copy(update={"batch": 3}))
    drawn = [next(batches) for _ in range(4)]
    assert [{row.ids[0] for row in batch} for batch in drawn] == [{2}, {1}, {2}, {1}]
    for one in (drawn[0] + drawn[2], drawn[1] + drawn[3]):
        assert sorted(row.ids[1] for row in one) == list(range(10, 16))
