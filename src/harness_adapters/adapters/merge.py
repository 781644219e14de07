"""An adapter and its base as one model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from harness_adapters.adapters.source import Adapter
from harness_adapters.errors import ModelError


def merge(adapter: Adapter, base: Path, out: Path) -> Path:
    """Write base + adapter to `out`, in the base's number format, with tokenizer and template.

    Raises ModelError where `out` is not empty, or the adapter doesn't fit.
    """
    if out.exists() and any(out.iterdir()):
        raise ModelError(f"{out} is not empty: name another directory with --out")
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(base, dtype="auto")
    try:
        merged = PeftModel.from_pretrained(model, str(adapter.path)).merge_and_unload()
    except (RuntimeError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(f"{adapter.path} doesn't fit {base}: {reason}") from None
    merged.save_pretrained(out)
    for file in sorted(base.iterdir()):
        if file.is_file() and not (out / file.name).exists() and file.suffix != ".safetensors":
            shutil.copyfile(file, out / file.name)
    note = {"base": base.name, "adapter": adapter.label, "adapter_sha256": adapter.sha256}
    (out / "merged.json").write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")
    return out
