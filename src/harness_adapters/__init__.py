"""Train one small LoRA adapter per model and agent harness, inside the real, unmodified agent."""

__version__ = "0.1.0"
