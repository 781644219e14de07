"""The learner's own process: JSON lines on standard input and output.

    python -m harness_adapters.learner RUN_DIR --harness pi --model DIR [--parent PID]

One request per line, one answer per line, in order:

    {"op": "publish"}                                  -> {"ok", "adapter", "path", "version"}
    {"op": "update", "step": n, "rollouts": [id, …]}   -> the same and "metrics", "step"
    {"op": "logprobs", "pairs": [[prompt_ids, output_ids], …], "adapter": path or null}
                                                       -> {"ok", "logprobs": [[…], …]}
    {"op": "close"}                                    -> {"ok"}, then the process ends

The first line says that it's ready: {"ok", "ready", "step", "version", "note"}. A request that
fails is answered {"ok": false, "error": one line}. Rollouts are read from the run's store; settings
from its `config.toml`; the model from `--model`, else from the store's fact `model_dir`. With
`train.processes` above 1 it starts the others, which share each update. It ends with its input, and
with `--parent` also when that process, the one that started it, dies.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from harness_adapters import config
from harness_adapters.config import Settings
from harness_adapters.errors import HarnessAdaptersError, LearnerError
from harness_adapters.learner.asked import asked_rollouts
from harness_adapters.learner.wire import say, take_standard_output
from harness_adapters.lifeline import end_with
from harness_adapters.store import Store

if TYPE_CHECKING:
    from harness_adapters.learner.ranks import Ranks


def main(arguments: list[str] | None = None) -> int:
    """Serve requests until `close` or the end of input."""
    parser = argparse.ArgumentParser(prog="harness-adapters learner")
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--harness", required=True)
    parser.add_argument("--model", type=Path, help="model directory (else the run's own)")
    parser.add_argument("--parent", type=int, help="end when this process, which starts us, dies")
    parser.add_argument("--rank", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--meeting", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.parent is not None:
        end_with(options.parent)
    wire = take_standard_output()
    try:
        file = options.run_dir / "config.toml"
        settings = config.load(file if file.is_file() else None)
        from harness_adapters.learner.ranks import Ranks, gathered

        if options.rank:
            ranks = Ranks(options.rank, settings.train.processes, options.meeting)
            return _follow(_Server(options, settings, ranks), ranks)
        with gathered(settings.train.processes, partial(_as_rank, options)) as ranks:
            return _lead(_Server(options, settings, ranks), ranks, wire)
    except HarnessAdaptersError as error:
        print(error, file=sys.stderr, flush=True)
        say(wire, {"ok": False, "error": str(error)})
        return error.exit_code


def _as_rank(options: argparse.Namespace, rank: int, meeting: Path) -> list[str]:
    model = ["--model", str(options.model)] if options.model else []
    return [
        "harness_adapters.learner", str(options.run_dir), "--harness", options.harness, *model,
        "--rank", str(rank), "--meeting", str(meeting),
    ]  # fmt: skip


def _lead(server: _Server, ranks: Ranks, wire: TextIO) -> int:
    say(wire, server.ready())
    for line in sys.stdin:
        ranks.tell(line)
        answer = server.answer(line)
        say(wire, answer)
        if answer.get("closed"):
            break
    return 0


def _follow(server: _Server, ranks: Ranks) -> int:
    """Do what the first process does, without a word; it is ended by that one."""
    while not server.answer(ranks.hear()).get("closed"):
        pass
    return 0


class _Server:
    def __init__(self, options: argparse.Namespace, settings: Settings, ranks: Ranks) -> None:
        run, model = options.run_dir, options.model
        self._store = Store.existing(run)
        stored = self._store.fact("model_dir")
        if model is None and stored is None:
            raise LearnerError(f"{run} doesn't say which model it trains; give --model DIR")
        import torch

        from harness_adapters.learner.learner import Learner

        torch.set_num_threads(settings.train.threads)
        self._ranks = ranks
        self._learner = Learner(run, options.harness, model or Path(stored), settings, ranks)

    def ready(self) -> dict[str, Any]:
        learner = self._learner
        print(f"ready at step {learner.step}, version {learner.version}", file=sys.stderr)
        if learner.note:
            print(learner.note, file=sys.stderr)
        return {
            "ok": True,
            "ready": True,
            "step": learner.step,
            "version": learner.version,
            "note": learner.note,
        }

    def answer(self, line: str) -> dict[str, Any]:
        try:
            request = json.loads(line)
            return {"ok": True} | self._dispatch(request)
        except HarnessAdaptersError as error:
            print(error, file=sys.stderr, flush=True)
            return {"ok": False, "error": str(error)}
        except (ValueError, KeyError, TypeError) as error:
            # Bad requests and rollouts that can't be rows; the process and its state live on.
            traceback.print_exc()
            return {"ok": False, "error": f"{type(error).__name__}: {error}"}

    def _dispatch(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["op"]:
            case "publish":
                name, path = self._learner.publish()
                return {"adapter": name, "path": str(path), "version": self._learner.version}
            case "update":
                return self._update(int(request["step"]), list(request["rollouts"]))
            case "logprobs" if not self._ranks.first:
                return {}
            case "logprobs":
                pairs = [(list(prompt), list(output)) for prompt, output in request["pairs"]]
                folder = request.get("adapter")
                return {"logprobs": self._learner.logprobs(pairs, Path(folder) if folder else None)}
            case "close":
                self._store.close()
                return {"closed": True}
            case other:
                raise LearnerError(f"unknown request {other!r}")

    def _update(self, step: int, ids: list[str]) -> dict[str, Any]:
        result = self._learner.update(step, asked_rollouts(self._store, ids))
        path = self._learner.adapter_path(result.adapter)
        return {
            "step": step,
            "metrics": result.metrics,
            "adapter": result.adapter,
            "path": str(path),
            "version": result.version,
        }
