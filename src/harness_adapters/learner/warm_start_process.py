"""The warm start as a process of its own, so that its memory is free before an engine starts.

    python -m harness_adapters.learner.warm_start_process [--parent PID]

reads one JSON line from standard input (`run_dir`, `model_dir`, `out`, `settings`, `rollouts`,
`threads`, `save_at`, `dtype`, `device`, `token_budget`, `trust_remote_code`: see
`client.warm_start_in_process`) and prints one JSON line per step (`{"step", "steps", "loss"}`) and
a last one (`{"ok": true, ...}` or `{"ok": false, "error": ...}`). With `--parent` it ends when that
process, the one that started it, dies.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from harness_adapters.config import WarmStartSettings
from harness_adapters.errors import HarnessAdaptersError
from harness_adapters.learner.asked import asked_rollouts
from harness_adapters.learner.wire import say, take_standard_output
from harness_adapters.lifeline import end_with
from harness_adapters.store import Store

Say: TypeAlias = Callable[[dict[str, Any]], None]


def main(arguments: list[str] | None = None) -> int:
    """Run one warm start; exit status 0 if it was saved."""
    parser = argparse.ArgumentParser(prog="harness-adapters warm start")
    parser.add_argument("--parent", type=int, help="end when this process, which starts us, dies")
    options = parser.parse_args(arguments)
    if options.parent is not None:
        end_with(options.parent)
    wire = take_standard_output()
    try:
        request = json.loads(sys.stdin.readline())
        say(wire, {"ok": True} | _run(request, lambda record: say(wire, record)))
    except HarnessAdaptersError as error:
        say(wire, {"ok": False, "error": str(error)})
        return error.exit_code
    return 0


def _run(request: dict[str, Any], report: Say) -> dict[str, Any]:
    store = Store.existing(Path(request["run_dir"]))
    demonstrations = asked_rollouts(store, request["rollouts"])
    store.close()
    import torch

    from harness_adapters.learner.warm_start import warm_start

    torch.set_num_threads(request["threads"])
    result = warm_start(
        Path(request["model_dir"]),
        demonstrations,
        WarmStartSettings.model_validate(request["settings"]),
        Path(request["out"]),
        dtype=request["dtype"],
        device=request["device"],
        token_budget=request["token_budget"],
        trust_remote_code=request["trust_remote_code"],
        progress=lambda step, steps, loss: report({"step": step, "steps": steps, "loss": loss}),
        save_at=request["save_at"],
    )
    return {
        "path": str(result.directory),
        "losses": result.losses,
        "snapshots": {str(step): str(path) for step, path in result.snapshots.items()},
        "demonstrations": result.demonstrations,
        "note": result.note,
    }


if __name__ == "__main__":
    sys.exit(main())
