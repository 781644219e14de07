"""GGUF to a Hugging Face directory: dequantised, bfloat16, with our chat template."""

from __future__ import annotations

from pathlib import Path

from harness_adapters.engine.chat_template import CHATML_JSON
from harness_adapters.errors import ModelError

SAME_MATRIX = 0.1
"""Relative difference under which two embedding matrices are two quantisations of one."""


def convert(gguf: Path, target: Path, *, title: str) -> None:
    """Write `gguf` to the directory `target` as transformers would have saved the model.

    Raises ModelError when transformers can't read the file, OSError when the disk is full.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        model = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32
        )
    except (ValueError, KeyError, ImportError, RuntimeError) as error:
        raise ModelError(f"{title}: transformers can't read its GGUF file: {error}") from None
    # Dequantised weights still carry the quantiser, which refuses to be saved.
    model.hf_quantizer = None
    for holder, attribute in (
        (model.config, "quantization_config"),
        (model, "is_quantized"),
        (model, "quantization_method"),
    ):
        if attribute in vars(holder):
            delattr(holder, attribute)
    embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    if embedding.data_ptr() != head.data_ptr():
        difference = ((embedding - head).norm() / head.norm()).item()
        if difference < SAME_MATRIX:
            # The output matrix is stored with more bits: both become that one.
            model.get_input_embeddings().weight = torch.nn.Parameter(head.data.clone())
            model.config.tie_word_embeddings = True
            model.tie_weights()
    model = model.to(torch.bfloat16)
    model.config.dtype = torch.bfloat16
    model.config._name_or_path = title
    tokenizer.chat_template = CHATML_JSON
    tokenizer.model_max_length = model.config.max_position_embeddings
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
