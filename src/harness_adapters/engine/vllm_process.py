"""Runs vLLM's OpenAI server; the process that `vllm_server` manages.

A thin layer around `python -m vllm.entrypoints.openai.api_server`: the server ends when its parent
dies, so that a killed run leaves no server behind.
"""

from __future__ import annotations

import runpy
import signal
import sys
import warnings

from harness_adapters.lifeline import end_with


def main(parent: int) -> None:
    """Serve with the arguments in `sys.argv` until the process `parent` ends."""
    # Not SIGKILL: on a GPU the server has children of its own to end.
    end_with(parent, signal.SIGTERM)
    # vLLM announces a successor of this module; the `vllm` command fails on its CPU build.
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(int(sys.argv.pop(1)))
