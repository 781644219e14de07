"""The shared forward equals the model's own code, row by row: log-probabilities and gradients."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model

from harness_adapters.learner import shared_forward, tree
from harness_adapters.learner.forward import Loss, Terms, row_logprobs
from harness_adapters.learner.plain_forward import PlainForward
from harness_adapters.learner.rows import Row
from harness_adapters.learner.shared_forward import SharedForward, choose_forward
from harness_adapters.learner.trie import distinct_tokens

from .builders import FAMILIES, VOCABULARY, forked_rows, tiny_model

LOGPROB_TOLERANCE = 1e-5
GRADIENT_TOLERANCE = 1e-4


def with_lora(model: Any) -> Any:
    lora = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(model, lora)
    torch.manual_seed(1)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    return model


def weighted(rows: list[Row]) -> Loss:
    """A loss with a different weight on every term, so that no mix-up cancels out."""

    def loss(terms: Terms, logprobs: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        key = terms.row_M * 1009 + terms.column_M * 31 + terms.rollout_M
        weight = torch.sin(key.float()) + 0.3 * terms.old_logprobs_M
        return (weight * logprobs).sum()

    return loss


def gradients(model: Any) -> dict[str, torch.Tensor]:
    return {
        n: p.grad for n, p in model.named_parameters() if p.requires_grad and p.grad is not None
    }


def assert_same(model: Any, rows: list[Row], **options: Any) -> Any:
    """Run `rows` both ways on copies of the model; returns the shared way's counts."""
    reference = copy.deepcopy(model)
    shared = SharedForward(model, **options)
    plain = PlainForward(reference, temperature=options.get("temperature", 1.0))
    ours, theirs = row_logprobs(shared, rows), row_logprobs(plain, rows)
    for a, b in zip(ours, theirs, strict=True):
        assert a == pytest.approx(b, abs=LOGPROB_TOLERANCE)
    counts = shared.run(rows, weighted(rows))
    plain.run(rows, weighted(rows))
    expected, found = gradients(reference), gradients(model)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        scale = gradient.abs().max().clamp(min=1e-6)
        assert (found[name] - gradient).abs().max() / scale <= GRADIENT_TOLERANCE, name
    return counts


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("trunk", [0, 1, 40])
@pytest.mark.parametrize("budget", [25, 4096])
def test_lora_gradients(family: str, trunk: int, budget: int) -> None:
    rows = forked_rows(trunk)
    counts = assert_same(with_lora(tiny_model(family)), rows, token_budget=budget)
    assert counts.trunk == trunk
    assert (counts.micro_batches > 1) == (budget == 25)
    assert counts.distinct == distinct_tokens(rows) <= counts.forwarded
    assert counts.forwarded < counts.merged or trunk == 0
    if budget == 4096:
        assert counts.forwarded == counts.distinct


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("tied", [True, False])
def test_gradients_of_all_weights(family: str, tied: bool) -> None:
    assert_same(tiny_model(family, tied=tied), forked_rows(40), token_budget=25)


@pytest.mark.parametrize("seed", range(4))
def test_many_batches(seed: int) -> None:
    assert_same(with_lora(tiny_model()), forked_rows(17, seed=seed), token_budget=12)


@pytest.mark.parametrize("block", [1, 3, 16])
@pytest.mark.parametrize("family", ["llama", "gemma3", "lfm3_like"])
def test_blocks_of_any_size(family: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "CPU_BLOCK", block)
    assert_same(with_lora(tiny_model(family)), forked_rows(20), token_budget=60)


def test_all_heads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree.Tree, "per_head", property(lambda _: False))
    assert_same(with_lora(tiny_model()), forked_rows(20), token_budget=60)


@pytest.mark.parametrize("family", ["llama", "gemma3", "lfm3_like"])
def test_activation_checkpointing_changes_nothing(family: str) -> None:
    assert_same(with_lora(tiny_model(family)), forked_rows(40), token_budget=25, checkpointing=True)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("segment", [1, 7, 25])
def test_a_long_trunk_goes_in_segments(
    family: str, segment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_forward, "WHOLE_TRUNK", 0)
    assert_same(with_lora(tiny_model(family)), forked_rows(40), token_budget=segment)


@pytest.mark.parametrize("family", ["llama", "gemma3", "lfm3_like"])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_segments_reach_all_weights(
    family: str, checkpointing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_forward, "WHOLE_TRUNK", 0)
    assert_same(tiny_model(family), forked_rows(40), token_budget=9, checkpointing=checkpointing)


def test_temperature() -> None:
    assert_same(with_lora(tiny_model()), forked_rows(10), temperature=0.7)
    assert_same(tiny_model(), forked_rows(10), temperature=1.3)


def test_attention_bias_and_an_output_layer_with_bias() -> None:
    model = tiny_model(attention_bias=True)
    model.lm_head.bias = torch.nn.Parameter(torch.randn(VOCABULARY))
    assert_same(model, forked_rows(10))


def test_one_row_and_duplicates() -> None:
    rows = forked_rows(10)
    assert_same(with_lora(tiny_model()), rows[:1])
    counts = assert_same(with_lora(tiny_model()), [rows[0], rows[0], rows[0]])
    assert counts.forwarded == len(rows[0].ids)
    assert counts.trained == 3 * sum(rows[0].trained)


def test_rows_that_train_their_second_token() -> None:
    rows = [Row(i, [1, 2 + i, 3], [False, True, True], [0.0, -1.0, -1.0]) for i in range(3)]
    assert assert_same(tiny_model(), rows).trunk == 0


def test_bfloat16_stays_near_float32() -> None:
    rows = forked_rows(40)
    exact = row_logprobs(PlainForward(tiny_model()), rows)
    rounded = row_logprobs(SharedForward(tiny_model().bfloat16(), token_budget=25), rows)
    apart = [
        abs(a - b) for x, y in zip(exact, rounded, strict=True) for a, b in zip(x, y, strict=True)
    ]
    assert sum(apart) / len(apart) < 0.05


def test_all_families_share() -> None:
    for family in FAMILIES:
        forward, note = choose_forward(with_lora(tiny_model(family)))
        assert isinstance(forward, SharedForward)
        assert note == ""


def test_a_layer_of_another_kind_falls_back_and_says_so() -> None:
    model = tiny_model("gemma3")
    model.config.layer_types = ["chunked_attention", "full_attention", "full_attention"]
    before = model.config._attn_implementation
    forward, note = choose_forward(model)
    assert isinstance(forward, PlainForward)
    assert note == (
        "prefix sharing is off for Gemma3ForCausalLM: it has chunked_attention layers; rows run one"
        " by one"
    )
    assert model.config._attn_implementation == before


def test_capped_scores_fall_back_and_say_so() -> None:
    model = tiny_model("gemma3")
    attend = model.model.layers[0].self_attn
    original = attend.forward
    attend.forward = lambda *a, **k: original(*a, **k, softcap=20.0)
    _, note = choose_forward(model)
    assert "attention of Gemma3Attention uses softcap" in note


def test_a_layer_that_mixes_neighbours_is_caught_by_the_probe() -> None:
    """As a short convolution does, without the configuration saying so."""
    model = tiny_model()
    mlp = model.model.layers[1].mlp
    original = mlp.forward
    mlp.forward = lambda x: original(x) + torch.nn.functional.pad(x, (0, 0, 1, 0))[:, :-1]
    forward, note = choose_forward(model)
    assert isinstance(forward, PlainForward)
    assert "log-probabilities differ" in note
    rows = forked_rows(10)
    reference = row_logprobs(PlainForward(model), rows)
    assert row_logprobs(forward, rows) == reference


def test_no_rows_do_nothing() -> None:
    model = tiny_model()
    counts = SharedForward(model).run([], weighted([]))
    assert counts.forwarded == 0
    assert gradients(model) == {}
