"""VllmEngine: one vLLM server over HTTP, started here or attached to.

Prompts go in as token ids and come out with the sampled ids and their log-probabilities, taken
from the distribution that was sampled from (`processed_logprobs`, nothing but temperature), which
is what makes importance ratios unbiased. Every adapter version gets its own name: vLLM keys its
prefix cache by name, so a reused name would serve stale attention states. On a server that others
use, too, names get a prefix that no other run has.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from harness_adapters.engine import BASE, Completion, Sampling
from harness_adapters.engine.served_model import check_served
from harness_adapters.engine.uses import Uses
from harness_adapters.engine.vllm_options import (
    ServerOptions,
    server_arguments,
    server_environment,
)
from harness_adapters.errors import ContextError, EngineError

Progress = Callable[[str], None]

START_TIMEOUT = 600.0
"""Seconds; a large model read from a slow disk takes minutes."""
STOP_GRACE = 10.0
"""Seconds between asking the server to end and killing it."""
READ_TIMEOUT = 900.0
"""Seconds for one answer: long queues on a small machine are no error."""


@dataclass(frozen=True, slots=True)
class _Adapter:
    served_as: str
    path: Path


class VllmEngine:
    """An Engine that speaks to vLLM's HTTP server. Make it with `start` or `attach`."""

    def __init__(
        self,
        url: str,
        *,
        max_context: int,
        end_ids: Sequence[int],
        process: asyncio.subprocess.Process | None = None,
        log_file: Path | None = None,
        base_model: str = BASE,
        seeds: bool = False,
    ) -> None:
        self._max_context = max_context
        self._end_ids = list(end_ids)
        self._process = process
        self._log_file = log_file
        self._base_model = base_model
        # vLLM 0.32 on the CPU dies of a seeded request whose prefill is cut in two ("CPU Generator
        # does not use offset"); what an attached server runs on isn't known.
        self._seeds = seeds
        self._adapters: dict[str, _Adapter] = {}
        self._sent: set[str] = set()  # names that the server may hold, also after a failed load
        self._leaving: set[str] = set()
        self._uses = Uses()
        self._loading = asyncio.Lock()
        self._prefix = "" if process else f"run-{secrets.token_hex(4)}-"
        self.url = url
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        timeout = httpx.Timeout(READ_TIMEOUT, connect=10.0)
        # Loopback traffic: a proxy from the environment would be wrong.
        self._http = httpx.AsyncClient(
            base_url=url, limits=limits, timeout=timeout, trust_env=False
        )

    @classmethod
    async def start(
        cls,
        model_dir: Path,
        options: ServerOptions,
        *,
        end_ids: Sequence[int],
        log_file: Path,
        progress: Progress = lambda _: None,
        timeout: float = START_TIMEOUT,
    ) -> VllmEngine:
        """Start a server and wait until it answers. Raises EngineError with its last log line."""
        port = _free_port()
        log_file.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "harness_adapters.engine.vllm_process", str(os.getpid())]
        command += server_arguments(model_dir, port, options)
        with log_file.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=asyncio.subprocess.STDOUT,
                env=server_environment(options),
                start_new_session=True,
            )
        engine = cls(
            f"http://127.0.0.1:{port}",
            max_context=options.max_context,
            end_ids=end_ids,
            process=process,
            log_file=log_file,
            seeds=options.device == "cuda",
        )
        try:
            await engine._wait_until_ready(progress, timeout)
            # The first request pays for kernels and sampler being set up; no session should.
            await engine.generate([end_ids[0]] * 8, sampling=Sampling(1.0, 2))
        except BaseException:
            await engine.close()
            raise
        return engine

    @classmethod
    async def attach(cls, url: str, model_dir: Path, *, end_ids: Sequence[int]) -> VllmEngine:
        """Use a server that runs already; `close` takes our adapters out and leaves it running.

        It must have been started with the flags of `server_arguments` that concern sampling and
        adapters; the canary finds out when it wasn't. Raises EngineError, also for a server of
        another model than the one in `model_dir`, as far as its names tell.
        """
        url = url.rstrip("/").removesuffix("/v1")
        engine = cls(url, max_context=0, end_ids=end_ids)
        try:
            models = (await engine._request("GET", "/v1/models"))["data"]
            base = next(m for m in models if not m.get("parent"))
            engine._base_model = str(base["id"])
            engine._max_context = int(base["max_model_len"])
            check_served(url, str(base.get("root") or base["id"]), model_dir)
        except (KeyError, StopIteration, TypeError, ValueError):
            await engine.close()
            raise EngineError(f"{url}: answers, but not as a vLLM server; check --engine") from None
        except BaseException:
            await engine.close()
            raise
        return engine

    @property
    def kind(self) -> str:
        """`vllm`."""
        return "vllm"

    @property
    def max_context(self) -> int:
        """Prompt + output tokens."""
        return self._max_context

    @property
    def process_id(self) -> int | None:
        """Of the managed server; None when attached."""
        return self._process.pid if self._process else None

    async def generate(
        self, prompt_ids: list[int], *, adapter: str = BASE, sampling: Sampling, session: str = ""
    ) -> Completion:
        """Sample one answer; cancelling this call aborts the request in the server."""
        room = self._max_context - len(prompt_ids)
        if room < 1:
            raise ContextError(
                f"a prompt of {len(prompt_ids)} tokens leaves no room in a context of "
                f"{self._max_context}; raise engine.max_context or shorten the session"
            )
        body: dict[str, Any] = {
            "model": self._model(adapter),
            "prompt": prompt_ids,
            "max_tokens": min(sampling.max_tokens, room),
            "temperature": sampling.temperature,
            "top_p": 1.0,
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "logprobs": 0,
            "return_token_ids": True,
            "stop_token_ids": self._end_ids,
            "skip_special_tokens": False,
        }
        if sampling.seed is not None and self._seeds:
            body["seed"] = sampling.seed
        started = time.perf_counter()
        with self._uses.one(adapter):
            answer = await self._request("POST", "/v1/completions", body)
        return _completion(answer, time.perf_counter() - started)

    def _model(self, adapter: str) -> str:
        if adapter == BASE:
            return self._base_model
        if adapter not in self._adapters:
            raise EngineError(f"adapter {adapter!r} is not loaded; load_adapter comes first")
        loaded = self._adapters[adapter]
        # vLLM reads an evicted adapter from disk again, and dies when it can't.
        if not (loaded.path / "adapter_config.json").is_file():
            raise EngineError(
                f"adapter {adapter!r}: its directory {loaded.path} is gone; "
                "unload an adapter before deleting it"
            )
        return loaded.served_as

    async def load_adapter(self, name: str, path: Path) -> None:
        """Make a PEFT directory servable under a new name; running requests go on.

        Nothing to do where it is loaded already. Raises EngineError, also for a name that another
        directory was loaded under.
        """
        path = path.resolve()
        async with self._loading:  # so that two who want the same adapter load it once
            loaded = self._adapters.get(name)
            if loaded is not None and loaded.path == path:
                return
            if name == BASE or loaded is not None or name in self._leaving:
                raise EngineError(
                    f"adapter name {name!r} is taken; each version needs a new name, because the "
                    "server's prefix cache is keyed by it"
                )
            if not (path / "adapter_config.json").is_file():
                raise EngineError(f"{path}: no adapter_config.json; not a PEFT adapter")
            new = _Adapter(f"{self._prefix}{name}", path)
            body = {"lora_name": new.served_as, "lora_path": str(path)}
            self._sent.add(new.served_as)
            await self._request("POST", "/v1/load_lora_adapter", body)
            self._adapters[name] = new

    async def unload_adapter(self, name: str) -> None:
        """Take no new requests for an adapter, and forget it when those in flight have ended.

        Raises EngineError for a name that isn't loaded.
        """
        adapter = self._adapters.pop(name, None)
        if adapter is None:
            raise EngineError(f"adapter {name!r} is not loaded")
        self._leaving.add(name)
        try:
            await self._uses.ended(name)
            async with self._loading:
                await self._take_out(adapter.served_as)
        finally:
            self._leaving.discard(name)

    async def _take_out(self, served_as: str) -> None:
        await self._request("POST", "/v1/unload_lora_adapter", {"lora_name": served_as})
        self._sent.discard(served_as)

    async def close(self) -> None:
        """Stop a managed server and all its children; take our adapters out of an attached one."""
        if self._process is None:
            # Whatever is wrong with somebody else's server, it must not keep a run from ending.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_GRACE):
                    for served_as in sorted(self._sent):
                        with contextlib.suppress(EngineError):
                            await self._take_out(served_as)
        await self._http.aclose()
        if self._process is None or self._process.returncode is not None:
            return
        for wanted in (signal.SIGTERM, signal.SIGKILL):
            _signal_group(self._process.pid, wanted)
            try:
                await asyncio.wait_for(self._process.wait(), STOP_GRACE)
                break
            except TimeoutError:
                continue
        # Children that outlive their parent still hold memory.
        _signal_group(self._process.pid, signal.SIGKILL)

    async def _wait_until_ready(self, progress: Progress, timeout: float) -> None:
        started = time.monotonic()
        told = 0.0
        while (waited := time.monotonic() - started) < timeout:
            if self._process and self._process.returncode is not None:
                raise self._dead("ended while starting")
            try:
                response = await self._http.get("/health", timeout=2.0)
                if response.status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            if waited - told >= 5.0:
                told = waited
                progress(f"vLLM is starting ({waited:.0f} s; usually 25-60 s)")
            await asyncio.sleep(0.25)
        raise EngineError(
            f"vLLM did not answer within {timeout:.0f} s; end of {self._log_file}: "
            f"{self._last_line()}"
        )

    async def _request(self, method: str, path: str, body: object = None) -> Any:
        try:
            response = await self._http.request(method, path, json=body)
        except httpx.TransportError as error:
            if self._process is not None:
                # A dying server closes its connections a moment before it can be waited for.
                try:
                    await asyncio.wait_for(self._process.wait(), 2.0)
                except TimeoutError:
                    pass
                else:
                    raise self._dead("died") from None
            raise EngineError(
                f"the inference server at {self.url} can't be reached "
                f"({str(error) or type(error).__name__}); is it running?"
            ) from None
        if response.status_code == httpx.codes.OK:
            try:
                return response.json()
            except ValueError:
                return response.text
        raise _refused(response, path)

    def _dead(self, how: str) -> EngineError:
        return EngineError(
            f"vLLM {how} (exit {self._process.returncode if self._process else '?'}); "
            f"end of {self._log_file}: {self._last_line()}"
        )

    def _last_line(self) -> str:
        """The log's last error with the two lines after it, else its last line."""
        try:
            text = self._log_file.read_text(errors="replace") if self._log_file else ""
        except OSError:
            return "(unreadable)"
        lines = [line.strip() for line in text[-20_000:].splitlines() if line.strip()]
        errors = [i for i, line in enumerate(lines) if "Error: " in line]
        shown = lines[errors[-1] : errors[-1] + 3] if errors else lines[-1:]
        return " ".join(shown)[:400] or "(empty)"


def _completion(answer: Any, seconds: float) -> Completion:
    try:
        choice = answer["choices"][0]
        output_ids: list[int] = choice["token_ids"]
        logprobs: list[float] = choice["logprobs"]["token_logprobs"]
        finish = choice["finish_reason"]
        details = answer["usage"].get("prompt_tokens_details") or {}
        cached = int(details.get("cached_tokens") or 0)
    except (KeyError, IndexError, TypeError) as error:
        raise EngineError(
            f"the inference server's answer lacks {error}; it must be vLLM with return_token_ids"
        ) from None
    if finish not in ("stop", "length") or len(output_ids) != len(logprobs):
        raise EngineError(
            f"the inference server ended a request with {finish!r}, {len(output_ids)} tokens and "
            f"{len(logprobs)} log-probabilities; see its log"
        )
    return Completion(output_ids, logprobs, finish, cached, seconds)


def _refused(response: httpx.Response, path: str) -> EngineError:
    try:
        message = str(json.loads(response.text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        message = response.text.strip() or "no message"
    first = message.splitlines()[0][:300]
    # vLLM also answers 404 for an adapter that it can't find, and then names it.
    missing_route = response.status_code == httpx.codes.NOT_FOUND and "adapter" not in message
    if path == "/v1/load_lora_adapter" and missing_route:
        return EngineError(
            "the inference server can't take adapters while it runs: start it with --enable-lora "
            "and with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 in its environment"
        )
    if "maximum context length" in message or "max_model_len" in message:
        return ContextError(f"the prompt is too long for the engine: {first}")
    return EngineError(f"the inference server refused {path} ({response.status_code}): {first}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _signal_group(group: int, wanted: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, wanted)
