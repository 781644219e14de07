"""Gateway: two wires between an agent and an engine; capture of turns, budgets, the guard.

One listener per session: the socket is the session's identity. It knows nothing of a harness's
internals and of training.

    gateway = Gateway(engine, chat, policy, audit)
    tape = gateway.open(spec)
    await sandbox.exec(argv, env=env, timeout=60, serve=functools.partial(gateway.serve, tape))
    tape.turns, tape.end
"""

from harness_adapters.gateway.server import Gateway
from harness_adapters.gateway.tape import SessionSpec, Tape

__all__ = ["Gateway", "SessionSpec", "Tape"]
