import pytest

from conformance.playing import Played, play
from gateway.support import make_gateway
from harness_adapters.harness.hermes import Hermes
from harness_adapters.harness.install import install
from harness_adapters.harness.pi import Pi


@pytest.fixture(scope="session")
def pi() -> Pi:
    """The real pi, installed where users have it."""
    install("pi")
    return Pi()


@pytest.fixture(scope="session")
def hermes() -> Hermes:
    """The real hermes, installed where users have it."""
    install("hermes")
    return Hermes()


@pytest.fixture
def run(tmp_path):
    """Play one session of a real harness in a real sandbox on a script."""

    async def playing(harness, script, *, policy=None, **options) -> Played:
        gateway = make_gateway(tmp_path, {"s1": script}, policy=policy)
        return await play(harness, gateway, tmp_path, **options)

    return playing
