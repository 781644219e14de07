"""A model with PEFT adapters in this process: what the fallback engine and the canary run on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness_adapters.engine import BASE
from harness_adapters.engine.models import load_with_own_code
from harness_adapters.errors import EngineError, ModelError


class LocalModel:
    """A transformers model and its adapters by name. Not safe for use from two threads at once."""

    def __init__(self, model: Any) -> None:
        self.model = model
        """The transformers model; a PeftModel from the first adapter on."""
        self._adapters: dict[str, tuple[str, Path]] = {}
        self._loaded = 0

    @classmethod
    def load(
        cls, model_dir: Path, *, dtype: str, device: str = "cpu", trust_remote_code: bool = False
    ) -> LocalModel:
        """Read the weights in `model_dir`. Raises ModelError."""
        import torch
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging

        # Its bars would tear the caller's own progress display.
        logging.disable_progress_bar()
        try:
            model = load_with_own_code(
                lambda trust: AutoModelForCausalLM.from_pretrained(
                    model_dir, dtype=getattr(torch, dtype), trust_remote_code=trust
                ),
                model_dir,
                allowed=trust_remote_code,
            )
        except (OSError, ValueError, KeyError) as error:
            first = (str(error).splitlines() or ["no message"])[0]
            raise ModelError(f"{model_dir}: transformers can't load the model: {first}") from None
        return cls(model.to(device).eval())

    @property
    def adapters(self) -> set[str]:
        """Names that can be used."""
        return set(self._adapters)

    def load_adapter(self, name: str, path: Path) -> None:
        """Read a PEFT directory under a new name; nothing to do where it is loaded already.

        Raises EngineError, also for a name that another directory was loaded under.
        """
        from peft import PeftModel

        path = path.resolve()
        if name == BASE or (name in self._adapters and self._adapters[name][1] != path):
            raise EngineError(f"adapter name {name!r} is taken; each version needs a new name")
        if name in self._adapters:
            return
        if not (path / "adapter_config.json").is_file():
            raise EngineError(f"{path}: no adapter_config.json; not a PEFT adapter")
        # PEFT makes module names of adapter names, and those may not hold a dot.
        inner = f"adapter_{self._loaded}"
        try:
            if isinstance(self.model, PeftModel):
                self.model.load_adapter(str(path), inner, autocast_adapter_dtype=False)
            else:
                dtype, device = self.model.dtype, self.model.device
                self.model = PeftModel.from_pretrained(
                    self.model, str(path), inner, autocast_adapter_dtype=False
                )
                self.model.to(device=device, dtype=dtype)
            # As the engine serves it: adapters in the model's own dtype.
            self.model.to(self.model.dtype)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            first = (str(error).splitlines() or ["no message"])[0]
            raise EngineError(f"{path}: PEFT can't load the adapter: {first}") from None
        self._loaded += 1
        self._adapters[name] = inner, path
        self.model.eval()

    def unload_adapter(self, name: str) -> None:
        """Forget an adapter. Raises EngineError for a name that isn't loaded."""
        if name not in self._adapters:
            raise EngineError(f"adapter {name!r} is not loaded")
        inner, _ = self._adapters.pop(name)
        if self._adapters:
            # PEFT asks the active adapter for its settings even to switch all of them off.
            self.model.set_adapter(next(iter(self._adapters.values()))[0])
            self.model.delete_adapter(inner)
        else:
            self.model = self.model.unload()

    @contextmanager
    def using(self, name: str) -> Iterator[Any]:
        """The model as it is under adapter `name` (or `base`), for as long as the block runs."""
        from peft import PeftModel

        if name == BASE:
            if isinstance(self.model, PeftModel):
                with self.model.disable_adapter():
                    yield self.model
            else:
                yield self.model
            return
        if name not in self._adapters:
            raise EngineError(f"adapter {name!r} is not loaded; load_adapter comes first")
        self.model.set_adapter(self._adapters[name][0])
        yield self.model


def token_logprobs(
    model: Any, prompt_ids: list[int], output_ids: list[int], temperature: float = 1.0
) -> list[float]:
    """Log-probabilities of `output_ids` after `prompt_ids` at `temperature`, by a plain forward."""
    import torch

    if not output_ids:
        return []
    ids = torch.tensor([prompt_ids + output_ids], device=model.device)
    with torch.inference_mode():
        logits = model(input_ids=ids, logits_to_keep=len(output_ids) + 1).logits[0, :-1]
        table = (logits.float() / temperature).log_softmax(-1)
        picked = table.gather(1, ids[0, len(prompt_ids) :, None])
    return [float(x) for x in picked[:, 0]]
