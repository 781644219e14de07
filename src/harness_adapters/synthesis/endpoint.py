"""A model behind an OpenAI-compatible endpoint, asked with a budget, its answers kept on disk.

The same question is asked once, ever: a repeated run costs nothing and gives the same tasks.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from harness_adapters.errors import EngineError

_KEY = "HARNESS_ADAPTERS_WRITER_KEY"
"""Environment variable with the endpoint's key, where it wants one."""
_SECONDS = 120.0
_TRIES = 3
_AT_ONCE = 4
"""Requests on the way: a small server that is asked more at a time answers none in time."""


@dataclass(slots=True)
class Endpoint:
    """`url` is what stands before `/chat/completions`, such as `http://127.0.0.1:8000/v1`."""

    url: str
    model: str
    cache: Path
    """A directory of its own; one JSON file for each answer."""
    budget: int = 10_000
    """Answers that may be asked for; cached ones don't count."""
    token_budget: int | None = None
    """Tokens that all answers asked for may cost, prompts included; None: no limit."""
    asked: int = 0
    tokens: int = 0
    """Of all answers that were asked for, prompts included, as the server counts them."""
    _free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def ask(
        self, prompt: str, *, system: str = "", sample: int = 0, max_tokens: int = 2048
    ) -> str:
        """One answer at temperature 1; `sample` tells repeated questions apart.

        Raises EngineError where the endpoint gives none or the budget is spent.
        """
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt})
        body = {
            "model": self.model,
            "messages": messages,
            "temperature": 1.0,
            "max_tokens": max_tokens,
            "seed": sample,
        }
        digest = hashlib.sha256(json.dumps([self.url, body]).encode()).hexdigest()
        place = self.cache / f"{digest[:32]}.json"
        if place.exists():
            return str(json.loads(place.read_text("utf-8"))["answer"])
        async with self._free:
            if self.asked >= self.budget:
                raise EngineError(
                    f"{self.url}: the budget of {self.budget} answers is spent; raise --budget and "
                    "go on with --resume"
                )
            if self.token_budget is not None and self.tokens >= self.token_budget:
                raise EngineError(
                    f"{self.url}: the budget of {self.token_budget} tokens is spent; raise "
                    "--token-budget and go on with --resume"
                )
            self.asked += 1
            answer = await self._post(body)
        self.cache.mkdir(parents=True, exist_ok=True)
        partial = place.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(json.dumps({"asked": body, "answer": answer}), "utf-8")
        partial.rename(place)
        return answer

    async def _post(self, body: dict[str, object]) -> str:
        headers = {"Authorization": f"Bearer {key}"} if (key := os.environ.get(_KEY)) else {}
        problem = ""
        for attempt in range(_TRIES):
            if attempt:
                await asyncio.sleep(2.0**attempt)
            try:
                async with httpx.AsyncClient(timeout=_SECONDS, headers=headers) as client:
                    response = await client.post(
                        f"{self.url.rstrip('/')}/chat/completions", json=body
                    )
                if response.status_code == 200:
                    found = response.json()
                    self.tokens += int((found.get("usage") or {}).get("total_tokens") or 0)
                    return str(found["choices"][0]["message"]["content"] or "")
                problem = f"status {response.status_code}"
                if response.status_code < 500 and response.status_code != 429:
                    break
            except (httpx.HTTPError, ValueError, KeyError, IndexError, TypeError) as error:
                problem = f"{type(error).__name__}: {error}"
        raise EngineError(
            f"{self.url}: no answer ({problem[:200]}); start the server or correct --writer"
        )
