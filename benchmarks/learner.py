"""One update of the learner against three other ways to compute it: seconds, memory, tokens.

    for h in pi opencode hermes; do
        python benchmarks/recorded_sessions.py --harness $h --out $h.json
    done
    python benchmarks/learner.py pi.json opencode.json hermes.json \
        --model smollm2 --model tiny-lfm2 --sample 4 --out found.json --plot growth.svg

- `turns`: every turn as a row of its own: its whole prompt, its sampled tokens.
- `merged`: turns merged by exact prefix, row by row.
- `ours`: every distinct token once.
- `trl`: TRL's GRPOTrainer with a `rollout_func` that hands over the same sessions, one by one; of
  a session that forks it gets the last row.

Three parts (`--part`, else all): `ways` on the recorded sessions; `growth`, `ours` and `merged` by
number of made-up sessions on one prompt; `memory`, the same two at 32k distinct tokens, with and
without activation checkpointing.

Each job runs alone in a fresh process, one thread, and is ended when it takes longer or more memory
than allowed; the others go on. With `--out` each result is written at once, and what is in the file
isn't measured again. `cpu s` are processor seconds of forward, backward and the optimizer's step
(they don't count the waiting for a busy machine), `peak` is the growth of resident memory over the
loaded model. `--sample N` computes only N rows of `turns` and `merged`, evenly spread over lengths
and the longest among them, and as many sessions by TRL; rows are independent, so their seconds are
multiplied by tokens. Rewards differ within a task, so every session is trained.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

WAYS = ("turns", "merged", "ours", "trl")
PARTS = ("ways", "growth", "memory")
IDLE = 20
"""So many times its seconds a job may take on the clock: it may hang, and the machine be busy."""
GROWTH_PROMPT, GROWTH_TURNS = 2600, 6
LONG_PROMPT, LONG_ROLLOUTS, LONG_TURNS = 13_000, 64, 4
"""33,800 distinct tokens: the longest stock prompt, and 20,800 below it."""


@dataclass(frozen=True)
class Job:
    """One update to measure; sessions are recorded (`file`) or made up (`prompt`, `turns`)."""

    part: str
    way: str
    model: str
    dtype: str
    token_budget: int
    checkpointing: bool
    rollouts: int
    """0: all of the file's."""
    attempts: int
    """Sessions of a task."""
    sample: int
    file: str = ""
    prompt: int = 0
    turns: int = 0

    @property
    def label(self) -> str:
        """Model and sessions: what jobs that are compared have in common."""
        sessions = Path(self.file).stem if self.file else f"{self.rollouts} on {self.prompt:,}"
        return f"{self.model}, {sessions}" + (", checkpointed" if self.checkpointing else "")


def planned(options: argparse.Namespace) -> Iterator[Job]:
    """All jobs of the command line, quick and important ones first."""
    ways = [way for way in ("ours", "merged", "trl", "turns") if way in (options.way or WAYS)]
    for model in options.model or ["smollm2"]:
        common = {
            "model": model,
            "dtype": options.dtype,
            "token_budget": options.token_budget,
            "attempts": options.attempts,
        }
        plain = common | {"checkpointing": options.checkpointing}
        if "ways" in options.part:
            for file in options.sessions:
                for way in ways:
                    sample = 0 if way == "ours" else options.sample
                    yield Job(
                        "ways",
                        way,
                        rollouts=options.rollouts,
                        sample=sample,
                        file=str(file),
                        **plain,
                    )
        for way in [way for way in ways if way in ("ours", "merged")]:
            if "growth" in options.part:
                for count in options.growth:
                    yield Job(
                        "growth", way, rollouts=count, prompt=GROWTH_PROMPT, turns=GROWTH_TURNS,
                        sample=2 if way == "merged" else 0, **plain,
                    )  # fmt: skip
            if "memory" in options.part:
                for checkpointing in (False, True):
                    yield Job(
                        "memory", way, rollouts=LONG_ROLLOUTS, prompt=LONG_PROMPT, turns=LONG_TURNS,
                        sample=1 if way == "merged" else 0, checkpointing=checkpointing, **common,
                    )  # fmt: skip


def run(job: Job, seconds: float, memory: int) -> dict[str, Any]:
    """What the job found, or why it was stopped (`stopped`; `failed` if by an error)."""
    script = Path(__file__).with_name("learner_ways.py")
    asked = json.dumps(asdict(job) | {"parent": os.getpid()})
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        worker = subprocess.Popen([sys.executable, script, asked], stdout=out, stderr=errors)
        stopped = ""
        while worker.poll() is None and not stopped:
            time.sleep(0.05)
            used, resident = usage(worker.pid)
            if resident > memory:
                stopped = f"needs more than {memory / 2**30:g} GiB"
            elif used > seconds or time.monotonic() - started > IDLE * seconds:
                stopped = f"takes longer than {seconds:g} s"
        if stopped:
            worker.kill()
            worker.wait()
            return {"stopped": stopped}
        out.seek(0)
        errors.seek(0)
        if worker.returncode:
            last = (errors.read().strip().splitlines() or [f"exit status {worker.returncode}"])[-1]
            return {"stopped": last, "failed": True}
        found: dict[str, Any] = json.loads(out.read().splitlines()[-1])
        return found


def usage(process: int) -> tuple[float, int]:
    """Processor seconds and resident bytes so far; 0 when the process has just ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0, 0
    ticks = int(fields[11]) + int(fields[12])  # utime and stime of proc_pid_stat(5)
    return ticks / os.sysconf("SC_CLK_TCK"), int(fields[21]) * os.sysconf("SC_PAGE_SIZE")


class Results:
    """Jobs and what they found, kept in a file as they come."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.found: dict[Job, dict[str, Any]] = {}
        if file is not None and file.exists():
            for entry in json.loads(file.read_text()):
                if "stopped" not in entry["found"]:
                    self.found[Job(**entry["job"])] = entry["found"]

    def __contains__(self, job: Job) -> bool:
        return job in self.found

    def add(self, job: Job, found: dict[str, Any]) -> None:
        """Keep what a job found, in the file too."""
        self.found[job] = found
        if self._file is not None:
            beside = self._file.with_suffix(".part")
            beside.write_text(self.as_json())
            beside.replace(self._file)

    def as_json(self) -> str:
        """A list of jobs, each with what it found."""
        entries = [{"job": asdict(job), "found": found} for job, found in self.found.items()]
        return json.dumps(entries, indent=1)


def table(found: dict[Job, dict[str, Any]], part: str) -> list[str]:
    """Markdown rows of one part, each with ratios against `ours` on the same sessions."""
    chosen = {job: values for job, values in found.items() if job.part == part}
    ours = {job.label: v for job, v in chosen.items() if job.way == "ours" and "stopped" not in v}
    heads = (
        "sessions | way | rows | forwarded | cpu s | x ours | wall s | x ours | peak MiB | x ours"
    )
    lines = ["", f"| {heads} |", "|---" * 10 + "|"]
    for job, values in chosen.items():
        if "stopped" in values:
            lines.append(f"| {job.label} | {job.way} | {values['stopped']} | | | | | | | |")
            continue
        distinct = f" ({values['distinct']:,} distinct)" if "distinct" in values else ""
        cells = [job.label, job.way, rows(values), f"{values['forwarded']:,}{distinct}"]
        for key, form in (
            ("cpu_seconds", "{:.1f}"), ("wall_seconds", "{:.1f}"), ("peak_bytes", "{:,.0f}")
        ):  # fmt: skip
            scale = 2**20 if key == "peak_bytes" else 1
            cells.append(form.format(values[key] / scale))
            base = ours.get(job.label)
            cells.append(f"{values[key] / base[key]:.1f}" if base else "")
        lines.append(f"| {' | '.join(cells)} |")
    return lines if chosen else []


def rows(values: dict[str, Any]) -> str:
    """`96`, or `96, 4 computed`."""
    computed = values.get("computed", values["rows"])
    return str(values["rows"]) + (f", {computed} computed" if computed < values["rows"] else "")


def plot(found: dict[Job, dict[str, Any]], file: Path) -> None:
    """Processor seconds of one update by number of rollouts, a panel for each model."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "learner"
    from matplotlib import pyplot

    points: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for job, values in found.items():
        if job.part == "growth" and "stopped" not in values:
            curve = points.setdefault(job.model, {}).setdefault(job.way, [])
            curve.append((job.rollouts, values["cpu_seconds"]))
    if not points:
        raise SystemExit("nothing to plot: no point of `growth` was measured")
    figure, panels = pyplot.subplots(
        1, len(points), figsize=(4.2 * len(points), 3.2), squeeze=False
    )
    for panel, (model, curves) in zip(panels[0], points.items(), strict=True):
        for way, curve in sorted(curves.items(), reverse=True):
            panel.plot(*zip(*sorted(curve), strict=True), marker="o", label=way)
        panel.set(title=model, xlabel=f"rollouts on {GROWTH_PROMPT:,} tokens", ylabel="CPU seconds")
        panel.set_xlim(left=0)
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
        panel.legend()
    figure.tight_layout()
    kept: dict[str, Any] = {"metadata": {"Date": None}} if file.suffix == ".svg" else {}
    figure.savefig(file, **kept)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sessions", type=Path, nargs="*")
    parser.add_argument("--model", action="append", help="tiny-lfm2, or as --model elsewhere")
    parser.add_argument("--part", action="append", choices=PARTS, help="again for more; else all")
    parser.add_argument("--way", action="append", choices=WAYS, help="again for more; else all")
    parser.add_argument("--dtype", default="float32", choices=["bfloat16", "float32"])
    parser.add_argument("--rollouts", type=int, default=0, help="only the first so many sessions")
    parser.add_argument("--attempts", type=int, default=4, help="sessions of a task")
    parser.add_argument("--growth", type=int, nargs="+", default=[4, 8, 16, 32, 64])
    parser.add_argument("--token-budget", type=int, default=1024)
    parser.add_argument("--checkpointing", action="store_true", help="in every way")
    parser.add_argument("--sample", type=int, default=0, help="rows that are really computed")
    parser.add_argument("--seconds", type=float, default=3600, help="of a processor, for each job")
    parser.add_argument("--gib", type=float, default=16, help="of memory, for each job")
    parser.add_argument("--out", type=Path, help="results so far, read and written")
    parser.add_argument("--plot", type=Path, help="the part `growth` as .svg or .png")
    parser.add_argument("--json", action="store_true", help="print this instead of tables")
    options = parser.parse_args(arguments)
    options.part = options.part or PARTS
    for file in options.sessions:
        if not file.is_file():
            parser.error(f"{file} isn't there; benchmarks/recorded_sessions.py makes such files")
    if "ways" in options.part and not options.sessions:
        parser.error("the part `ways` needs recorded sessions: benchmarks/recorded_sessions.py")
    return options


def main() -> int:
    options = parse()
    results, jobs = Results(options.out), list(planned(options))
    for number, job in enumerate(jobs, 1):
        if job in results:
            continue
        found = run(job, options.seconds, int(options.gib * 2**30))
        results.add(job, found)
        said = found.get("stopped") or f"{found['cpu_seconds']:.1f} CPU seconds"
        print(f"[{number}/{len(jobs)}] {job.label}, {job.way}: {said}", file=sys.stderr, flush=True)
    if options.plot:
        plot(results.found, options.plot)
    if options.json:
        print(results.as_json())
    else:
        for part in options.part:
            print("\n".join(table(results.found, part)))
    return int(any(found.get("failed") for found in results.found.values()))


if __name__ == "__main__":
    sys.exit(main())
