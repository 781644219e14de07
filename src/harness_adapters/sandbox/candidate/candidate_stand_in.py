"""What a test gets in the place of the agent's modules."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import importlib.abc
import importlib.machinery
import json
import os
import select
import signal
import subprocess
import sys
import time
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from candidate_values import packed, unpacked

HERE = Path(__file__).parent
PYTHON = "/usr/bin/python3"
SECONDS = 30.0
"""For one use of the agent's code."""
ANSWER_BYTES = 16 << 20
_PARTS = ("values", "worker")
_WORKER = """import sys, types
sys.modules["candidate_values"] = module = types.ModuleType("candidate_values")
exec({!r}, module.__dict__)
exec({!r})
"""
"""The child sees the working directory alone, so its own code comes on the command line."""
_OPERATIONS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "neg", "pos", "abs"),
    *("lt", "le", "gt", "ge", "getitem", "contains"),
)


class CandidateError(Exception):
    """The agent's code raised something that isn't Python's own, broke off, or ran too long."""


class Child:
    """The process that holds the agent's code, started when it is first used."""

    def __init__(self, workdir: str) -> None:
        self.workdir = workdir
        self.process: subprocess.Popen[bytes] | None = None
        self.errors: dict[int, type[Exception]] = {}
        self._rest = b""

    def ask(self, *request: Any) -> Any:
        """One use. Raises what the agent's code raised, by the name of Python's own error."""
        inside = self.workdir.rstrip("/")
        places = [p for p in sys.path if p == inside or p.startswith(inside + "/")]
        line = json.dumps([places, *request]) + "\n"
        answer = self._said(line.encode("ascii"))
        if "value" in answer:
            return answer["value"]
        try:
            error = self._error(answer)
        except (KeyError, TypeError, ValueError, IndexError) as unreadable:
            raise CandidateError(f"no readable answer: {unreadable}") from None
        raise error

    def value(self, answer: Any) -> Any:
        """What an answer holds: plain data, or a stand-in."""
        try:
            return unpacked(answer, self._object)
        except (KeyError, TypeError, ValueError, IndexError, ArithmeticError, RecursionError) as e:
            raise CandidateError(f"no readable answer: {e}") from None

    def packed(self, value: Any) -> Any:
        """An argument for the child. Raises TypeError for what can't cross."""

        def other(each: Any) -> Any:
            if isinstance(each, StandIn):
                return {"number": object.__getattribute__(each, "_number")}
            raise TypeError(
                f"{type(each).__name__}: only plain data and the agent's own objects can be given "
                "to its code"
            )

        return packed(value, other)

    def _object(self, about: Any) -> Any:
        number, names = int(about["number"]), about.get("error")
        if names is not None:
            return self._class(number, [str(name) for name in names])
        return StandIn(self, number, str(about["type"])[:100])

    def _class(self, number: int, names: list[str]) -> type[Exception]:
        """A local class for one of the agent's errors, so that a test can expect it."""
        if number not in self.errors:
            base = next((e for n in names if (e := _own(n)) is not None), CandidateError)
            if base.__name__ == names[0]:
                self.errors[number] = base
            else:
                self.errors[number] = type(names[0][:100], (base,), {})
        return self.errors[number]

    def _error(self, answer: Any) -> Exception:
        names = [str(name) for name in answer["names"]]
        return self._class(int(answer["error"]), names)(str(answer["text"]))

    def _said(self, line: bytes) -> dict[str, Any]:
        if self.process is None:
            self.process = self._start()
        try:
            assert self.process.stdin is not None and self.process.stdout is not None
            self.process.stdin.write(line)
            self.process.stdin.flush()
            answer = json.loads(self._line(self.process.stdout.fileno()))
        except (OSError, ValueError, RecursionError) as error:
            self.stop()
            raise CandidateError(f"the agent's code broke off: {error}") from None
        if not isinstance(answer, dict):
            raise CandidateError("no readable answer")
        return answer

    def _line(self, stream: int) -> bytes:
        deadline = time.monotonic() + SECONDS
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([stream], [], [], left)[0]:
                raise OSError(f"no answer within {SECONDS:g} seconds")
            more = os.read(stream, 1 << 16)
            if not more:
                raise OSError("it ended")
            self._rest += more
            if len(self._rest) > ANSWER_BYTES:
                raise OSError("an answer that is too long")
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _start(self) -> subprocess.Popen[bytes]:
        atexit.register(self.stop)
        code = _WORKER.format(*((HERE / f"candidate_{n}.py").read_text() for n in _PARTS))
        return subprocess.Popen(
            [PYTHON, "-I", str(HERE / "confined.py"), self.workdir, code, self.workdir],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self.workdir,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            start_new_session=True,
        )

    def stop(self) -> None:
        """End it; the next use starts another, which knows nothing of the first."""
        process, self.process, self._rest = self.process, None, b""
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _own(name: str) -> type[Exception] | None:
    """Python's own error of a name. Those that end a process aren't for the agent to raise."""
    found = getattr(builtins, name, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


class StandIn:
    """An object, class or function of the agent's."""

    def __init__(self, child: Child, number: int, kind: str) -> None:
        object.__setattr__(self, "_child", child)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_kind", kind)

    def _ask(self, what: str, *rest: Any) -> Any:
        child: Child = object.__getattribute__(self, "_child")
        return child.value(child.ask(what, *rest))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__name__", "__doc__"):
            raise AttributeError(name)
        return self._ask("get", self._child.packed(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._ask("set", self._child.packed(self), name, self._child.packed(value))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the agent's code gives; lists, dicts and sets that it changes are changed here."""
        child: Child = self._child
        given = child.packed(list(arguments))
        answer = child.ask("call", child.packed(self), given, child.packed(named))
        for before, after in zip(arguments, answer["arguments"], strict=True):
            _changed(before, child.value(after))
        return child.value(answer["result"])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._ask("iterate", self._child.packed(self)))

    def __len__(self) -> int:
        return int(self._ask("operate", "len", self._child.packed(self)))

    def __bool__(self) -> bool:
        return bool(self._ask("operate", "bool", self._child.packed(self)))

    def __str__(self) -> str:
        return str(self._ask("operate", "str", self._child.packed(self)))

    def __repr__(self) -> str:
        return f"<the agent's {self._kind}>"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        raise TypeError(f"{self!r} can't be compared: ask it for plain data")

    def __hash__(self) -> int:
        return hash((id(self._child), self._number))


def _changed(before: Any, after: Any) -> None:
    """What the agent's code did to a list, dict or set that it was given."""
    if type(before) is not type(after):
        return
    if isinstance(before, list):
        before[:] = after
    elif isinstance(before, (dict, set)):
        before.clear()
        before.update(after)


def _operation(name: str) -> Any:
    def operate(self: StandIn, *others: Any) -> Any:
        pack = self._child.packed
        return self._ask("operate", name, pack(self), *map(pack, others))

    return operate


for _name in _OPERATIONS:
    setattr(StandIn, f"__{_name}__", _operation(_name))


class Module(types.ModuleType):
    """A module of the agent's."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        return getattr(self.__dict__["_there"], name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of these names, and those below them, in the child alone."""

    def __init__(self, modules: Sequence[str], workdir: str) -> None:
        self.modules = tuple(modules)
        self.child = Child(workdir)

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """See MetaPathFinder."""
        if name.split(".")[0] not in self.modules and name not in self.modules:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """See Loader."""
        return Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """See Loader. The agent's code is run now, in the child."""
        module.__dict__["_there"] = self.child.value(self.child.ask("import", module.__name__))
