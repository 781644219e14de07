from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from conformance.manners import MANNERS, Manners
from conformance.playing import Played, play
from gateway.support import make_gateway
from harness_adapters.harness import Harness, Profile
from harness_adapters.harness.install import install
from harness_adapters.harness.registry import get_harness, known_harnesses

PROMPT = "@in.txt --help\n$HOME `ls` \"'\\ ä\n"
"""What shells, templates and command lines like to change."""


@pytest.fixture(scope="session", params=known_harnesses())
def harness(request: pytest.FixtureRequest) -> Harness:
    """A real harness, installed where users have it."""
    install(request.param)
    return get_harness(request.param)


@pytest.fixture
def manners(harness: Harness) -> Manners:
    return MANNERS[harness.name]


@pytest.fixture
def run(harness: Harness, tmp_path: Path):
    """Play one session on a script; options are those of `play` and of `make_gateway`.

    Whatever a case is about: the agent's own record and the audit log must agree.
    """

    async def playing(script, *, policy=None, engine=None, **options) -> Played:
        gateway = make_gateway(tmp_path, {}, policy=policy, engine=engine)
        if engine is None:
            gateway.engine.script("s1", script)
        played = await play(harness, gateway, tmp_path, **options)
        assert played.disagreement == ""
        return played

    return playing


@pytest.fixture(scope="session")
def openings(
    harness: Harness, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[Profile, Played]:
    """One short session in each profile, for all cases that only read the first prompt."""

    async def opened(profile: Profile) -> Played:
        place = tmp_path_factory.mktemp(f"opening-{harness.name}-{profile}")
        gateway = make_gateway(place, {"s1": ["Done."]})
        return await play(
            harness, gateway, place, prompt=PROMPT, profile=profile, files={"in.txt": "x"}
        )

    return {profile: asyncio.run(opened(profile)) for profile in Profile}
