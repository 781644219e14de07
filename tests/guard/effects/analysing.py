"""Effects of one call, in the form that the tests compare."""

from harness_adapters.guard.effects import Scope, Session, World
from harness_adapters.guard.effects.tools import tool_effects


def analysed(tool, session=None, tree=None, cwd="/workspace", **arguments):
    session = session if session is not None else Session()
    world = World(Scope(), session, tree, cwd)
    tool_effects(world, tool, arguments)
    return world


def effects(command, session=None, tree=None):
    """(kind, target) of every effect of a shell command."""
    world = analysed("bash", session=session, tree=tree, command=command)
    return {(effect.kind.value, effect.target) for effect in world.effects}


def later(*calls, tree=None):
    """Effects of the last call, after the others were made."""
    session = Session()
    for number, (tool, arguments) in enumerate(calls):
        world = World(Scope(), session, tree, "/workspace")
        tool_effects(world, tool, arguments)
        if number < len(calls) - 1:
            world.commit()
    return {(effect.kind.value, effect.target) for effect in world.effects}
