"""The most used part of pytest, for test files that import it: tasks need nothing installed.

`fixture`, `raises`, `approx`, `skip`, `fail`, `mark.parametrize`, `mark.skip`, and the fixtures
`tmp_path`, `monkeypatch` and `capsys`. Anything else is an AttributeError in the test, so that no
test passes by what this leaves out.
"""

import contextlib
import inspect
import io
import math
import os
import re
import shutil
import tempfile
import types
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


class _Raises:
    def __init__(self, kind: Any, match: str | None) -> None:
        self.kind, self.match = kind, match
        self.value: Any = None

    def __enter__(self) -> "_Raises":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if error is None:
            raise AssertionError(f"did not raise {self.kind}")
        if not isinstance(error, self.kind):
            return False
        if self.match is not None and not re.search(self.match, str(error)):
            raise AssertionError(f"{str(error)!r} does not match {self.match!r}")
        self.value = error
        self.type = type(error)
        return True


def raises(kind: Any, *call: Any, match: str | None = None, **options: Any) -> Any:
    """A context that must end with this exception, or a call that must raise it."""
    context = _Raises(kind, match)
    if call:
        with context:
            call[0](*call[1:], **options)
    return context


class approx:  # noqa: N801 - pytest's name
    """Equal within 1e-6 of the value, or 1e-12."""

    def __init__(self, expected: Any, rel: float = 1e-6, abs: float = 1e-12) -> None:  # noqa: A002
        self.expected, self.rel, self.abs = expected, rel, abs

    def __eq__(self, other: object) -> bool:
        if isinstance(self.expected, list | tuple):
            return (
                isinstance(other, list | tuple)
                and len(other) == len(self.expected)
                and all(
                    approx(one, self.rel, self.abs) == two
                    for one, two in zip(self.expected, other, strict=True)
                )
            )
        return isinstance(other, int | float) and math.isclose(
            self.expected, other, rel_tol=self.rel, abs_tol=self.abs
        )

    __hash__ = None  # type: ignore[assignment]


def skip(reason: str = "") -> None:
    """End the test as skipped."""
    raise unittest.SkipTest(reason)


def fail(reason: str = "") -> None:
    """End the test as failed."""
    raise AssertionError(reason)


class _Row(tuple[Any, ...]):
    """Several values of `parametrize`, apart from one value that is a tuple."""


def param(*values: Any, id: str | None = None) -> _Row:  # noqa: A002
    """One row of `parametrize`."""
    return _Row(values)


class _Mark:
    @staticmethod
    def parametrize(names: Any, rows: Any, ids: Any = None) -> Callable[[Any], Any]:
        single = isinstance(names, str) and "," not in names
        listed = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)

        def mark(function: Any) -> Any:
            values = [row if isinstance(row, _Row) or not single else (row,) for row in rows]
            sets = [dict(zip(listed, row, strict=True)) for row in values]
            function.rows = [{**a, **b} for a in getattr(function, "rows", [{}]) for b in sets]
            return function

        return mark

    @staticmethod
    def skip(*args: Any, reason: str = "") -> Any:
        return unittest.skip(reason)(args[0]) if args else unittest.skip(reason)


mark = _Mark()


def fixture(function: Any = None, *, scope: str = "function", name: str | None = None) -> Any:
    """Mark a function as a fixture; every test gets a fresh one, whatever the scope says."""
    if function is None:
        return lambda inner: fixture(inner, scope=scope, name=name)
    function.fixture_name = name or function.__name__
    return function


class _MonkeyPatch:
    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack

    def setattr(self, target: Any, name: str, value: Any) -> None:
        old = getattr(target, name)
        self._stack.callback(setattr, target, name, old)
        setattr(target, name, value)

    def setenv(self, name: str, value: str) -> None:
        self._remember(os.environ, name)
        os.environ[name] = value

    def delenv(self, name: str, raising: bool = True) -> None:
        self._remember(os.environ, name)
        if os.environ.pop(name, None) is None and raising:
            raise KeyError(name)

    def setitem(self, mapping: Any, name: Any, value: Any) -> None:
        self._remember(mapping, name)
        mapping[name] = value

    def chdir(self, path: Any) -> None:
        self._stack.callback(os.chdir, Path.cwd())
        os.chdir(path)

    def _remember(self, mapping: Any, name: Any) -> None:
        if name in mapping:
            self._stack.callback(mapping.__setitem__, name, mapping[name])
        else:
            self._stack.callback(mapping.pop, name, None)


class _Capture:
    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._out, self._err = io.StringIO(), io.StringIO()
        stack.enter_context(contextlib.redirect_stdout(self._out))
        stack.enter_context(contextlib.redirect_stderr(self._err))

    def readouterr(self) -> Any:
        read = types.SimpleNamespace(out=self._out.getvalue(), err=self._err.getvalue())
        for stream in (self._out, self._err):
            stream.seek(0)
            stream.truncate()
        return read


def _value(name: str, module: types.ModuleType, stack: contextlib.ExitStack, own: Any) -> Any:
    if name == "tmp_path":
        path = Path(tempfile.mkdtemp())
        stack.callback(shutil.rmtree, path, True)
        return path
    if name == "monkeypatch":
        return _MonkeyPatch(stack)
    if name == "capsys":
        return _Capture(stack)
    for place in (own, module):
        for value in list(vars(place).values()) if place is not None else []:
            if getattr(value, "fixture_name", None) == name:
                arguments = _arguments(value, module, stack, own, {})
                made = value(**arguments)
                if isinstance(made, Iterator):
                    first = next(made)
                    stack.callback(next, made, None)
                    return first
                return made
    raise LookupError(f"no fixture {name}")


def _arguments(
    function: Any, module: types.ModuleType, stack: contextlib.ExitStack, own: Any, given: Any
) -> dict[str, Any]:
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    return {
        name: given[name] if name in given else _value(name, module, stack, own) for name in names
    }


def calls(
    module: types.ModuleType, function: Any, owner: Any
) -> Iterator[tuple[str, Callable[[], None]]]:
    """A label and a call for each set of parameters of a test function or method."""
    rows = getattr(function, "rows", None)

    def call(given: dict[str, Any]) -> None:
        if getattr(function, "__unittest_skip__", False):
            raise unittest.SkipTest(function.__unittest_skip_why__)
        with contextlib.ExitStack() as stack:
            arguments = _arguments(function, module, stack, owner, given)
            if owner is None:
                function(**arguments)
                return
            instance = owner()
            for name in ("setup_method", "teardown_method"):
                hook = getattr(instance, name, None)
                if hook is not None:
                    wanted = [None] * len(inspect.signature(hook).parameters)
                    if name == "setup_method":
                        hook(*wanted)
                    else:
                        stack.callback(hook, *wanted)
            function(instance, **arguments)

    for number, given in enumerate(rows if rows is not None else [{}]):
        yield f"[{number}]" if rows is not None else "", lambda given=given: call(given)
