"""Every Python process of the verifier: the agent's modules as stand-ins, its code never run here.

`CONFINED_MODULES` holds their names, separated by commas, `CONFINED_WORKDIR` where they lie. Both
are trusted: the verifier's environment is fixed before the agent's files are there.
"""

import os
import sys


def _install(modules, workdir):
    import candidate_stand_in

    sys.meta_path.insert(0, candidate_stand_in.Finder(modules, workdir))
    inside = os.path.realpath(workdir)

    def below(name):
        name = os.path.realpath(os.fsdecode(name))
        return name == inside or name.startswith(inside + "/")

    class Nothing:
        """Finds no module: what a test puts on its path can't shadow the standard library."""

        @staticmethod
        def find_spec(name, target=None):
            return None

    def nothing_below(path):
        if not below(path):
            raise ImportError
        return Nothing

    sys.path_hooks.insert(0, nothing_below)
    sys.path_importer_cache.clear()

    def watch(event, arguments):
        # Whatever way around the stand-ins is taken: no code from the agent's files runs here.
        if event == "import":
            name = arguments[1]
        elif event == "exec":
            name = getattr(arguments[0], "co_filename", "")
        elif event == "open" and str(arguments[0]).endswith(".pyc"):
            name = arguments[0]
        else:
            return
        # Code that has no file says what it likes: `<string>`, or any other word.
        if isinstance(name, (str, bytes)) and os.path.lexists(name) and below(name):
            raise ImportError(f"{name} is the agent's: name its module in `confined_modules`")

    sys.addaudithook(watch)


if os.environ.get("CONFINED_MODULES"):
    _install(os.environ["CONFINED_MODULES"].split(","), os.environ["CONFINED_WORKDIR"])
