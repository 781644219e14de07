"""Runs vLLM's OpenAI server; the process that `vllm_server` manages.

A thin layer around `python -m vllm.entrypoints.openai.api_server`: it asks the kernel to end the
server when its parent dies, so that a killed run leaves no server behind.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
import warnings

PR_SET_PDEATHSIG = 1
"""From Linux's <sys/prctl.h>."""


def main(parent: int) -> None:
    """Serve with the arguments in `sys.argv` until the process `parent` ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit("the process that wanted this server is gone")
    # vLLM announces a successor of this module; the `vllm` command fails on its CPU build.
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(int(sys.argv.pop(1)))
