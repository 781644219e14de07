"""Functions without effects that are worked out for real, on constants alone."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import itertools
import json
import operator
import posixpath
import string
import textwrap
import urllib.parse
import zlib
from collections.abc import Callable
from typing import Any

from harness_adapters.guard.effects.python.values import MAX_SIZE

MAX_RANGE = 4096


def _range(*args: int) -> list[int]:
    numbers = range(*args)
    if len(numbers) > MAX_RANGE:
        raise ValueError("too long")
    return list(numbers)


def _counted(value: Any) -> Any:
    if isinstance(value, int) and value > MAX_RANGE:
        raise ValueError("too long")
    return value


def _plain_codec(name: str) -> str:
    """A codec that makes no more than it gets: not those that decompress."""
    if name.lower().replace("-", "").replace("_", "") not in _CODECS:
        raise ValueError("not worked out")
    return name


_CODECS = frozenset(
    {
        *("utf8", "utf16", "utf32", "ascii", "latin1", "rot13", "hex", "hexcodec", "base64"),
        *("base64codec", "unicodeescape", "rawunicodeescape", "quopri", "uu", "utf7", "punycode"),
    }
)


def _decompress(data: bytes, wbits: int = zlib.MAX_WBITS) -> bytes:
    return zlib.decompressobj(wbits).decompress(data, MAX_SIZE)


def _gunzip(data: bytes) -> bytes:
    return zlib.decompressobj(31).decompress(data, MAX_SIZE)


PURE: dict[str, Callable[..., Any]] = {
    **{
        f.__name__: f
        for f in (
            *(chr, ord, hex, oct, bin, int, str, len, repr, ascii, list, tuple),
            *(dict, set, frozenset, sorted, min, max, sum, abs, divmod, round, bool, float),
            *(slice, all, any),
        )
    },
    "bytes": lambda value=b"", *rest: bytes(_counted(value), *rest),
    "bytearray": lambda value=b"", *rest: bytearray(_counted(value), *rest),
    "range": _range,
    "reversed": lambda items: list(reversed(items)),
    "zip": lambda *items: [tuple(row) for row in zip(*items, strict=False)],
    "enumerate": lambda items, start=0: list(enumerate(items, start)),
    "iter": lambda items: items,
    **{
        f"base64.{name}": getattr(base64, name)
        for name in (
            *("b64decode", "b64encode", "b32decode", "b16decode", "b85decode", "a85decode"),
            *("urlsafe_b64decode", "standard_b64decode", "decodebytes", "b32hexdecode"),
        )
    },
    **{
        f"binascii.{name}": getattr(binascii, name)
        for name in ("unhexlify", "a2b_hex", "a2b_base64", "hexlify", "b2a_hex")
    },
    "codecs.decode": lambda data, name="utf-8": codecs.decode(data, _plain_codec(name)),
    "codecs.encode": lambda data, name="utf-8": codecs.encode(data, _plain_codec(name)),
    "bytes.fromhex": bytes.fromhex,
    "bytearray.fromhex": bytearray.fromhex,
    "bytes.decode": bytes.decode,
    "str.lower": str.lower,
    "str.maketrans": str.maketrans,
    "int.from_bytes": int.from_bytes,
    "zlib.decompress": _decompress,
    "gzip.decompress": _gunzip,
    "html.unescape": html.unescape,
    "urllib.parse.unquote": urllib.parse.unquote,
    "urllib.parse.unquote_plus": urllib.parse.unquote_plus,
    "urllib.parse.quote": urllib.parse.quote,
    "urllib.parse.urljoin": urllib.parse.urljoin,
    "json.loads": json.loads,
    "json.dumps": json.dumps,
    "textwrap.dedent": textwrap.dedent,
    "os.path.basename": posixpath.basename,
    "os.path.dirname": posixpath.dirname,
    "os.path.normpath": posixpath.normpath,
    "os.path.splitext": posixpath.splitext,
    "os.path.split": posixpath.split,
    "itertools.chain": lambda *items: list(itertools.chain(*items)),
    "itertools.chain.from_iterable": lambda items: list(itertools.chain.from_iterable(items)),
    "operator.add": operator.add,
    "operator.itemgetter": operator.itemgetter,
    "shlex.split": lambda text, *rest, **more: __import__("shlex").split(text),
    "shlex.quote": lambda text: __import__("shlex").quote(text),
    "shlex.join": lambda words: __import__("shlex").join(words),
}
"""By dotted name; arguments are constants, exceptions mean: not worked out."""

CONSTANTS: dict[str, Any] = {
    **{
        f"string.{name}": getattr(string, name)
        for name in ("ascii_lowercase", "ascii_uppercase", "ascii_letters", "digits", "printable")
    },
    "string.punctuation": string.punctuation,
    "os.sep": "/",
    "os.path.sep": "/",
    "os.curdir": ".",
    "os.pardir": "..",
    "os.extsep": ".",
    "os.linesep": "\n",
    "sys.byteorder": "little",
    "__name__": "__main__",
}

STRING_METHODS = frozenset(
    {
        *(
            "join",
            "format",
            "replace",
            "lower",
            "upper",
            "title",
            "capitalize",
            "swapcase",
            "strip",
        ),
        *("lstrip", "rstrip", "split", "rsplit", "splitlines", "translate", "encode", "decode"),
        *(
            "removeprefix",
            "removesuffix",
            "startswith",
            "endswith",
            "find",
            "index",
            "count",
            "hex",
        ),
        *("isdigit", "isalpha", "partition", "rpartition", "casefold", "expandtabs", "zfill"),
        *("center", "ljust", "rjust", "isupper", "islower", "fromhex", "format_map", "maketrans"),
        *("copy", "keys", "values", "items", "get", "bit_length", "to_bytes", "rfind", "isspace"),
    }
)


def sized(value: Any) -> Any:
    """The value, unless it is too large. Raises ValueError."""
    if isinstance(value, (str, bytes, list, tuple, dict, set)) and len(value) > MAX_SIZE:
        raise ValueError("too long")
    if isinstance(value, int) and value.bit_length() > 4096:
        raise ValueError("too large")
    return value
