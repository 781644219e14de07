"""Bodies cut at any byte are the same bodies; what isn't framed as the format says is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.proxy.framing import MAX_LINE, BadFraming, Chunked, Endless, Sized


def written(parts, extension=b"", trailers=b""):
    chunks = [b"%x" % len(part) + extension + b"\r\n" + part + b"\r\n" for part in parts if part]
    return b"".join(chunks) + b"0\r\n" + trailers + b"\r\n"


@given(
    st.lists(st.binary(max_size=40), max_size=6),
    st.sampled_from([b"", b";a=b", b" ; x"]),
    st.sampled_from([b"", b"x-sum: 1\r\n", b"a: b\r\nc: d\r\n"]),
    st.data(),
)
def test_chunks_at_any_portions(parts, extension, trailers, data):
    stream = written(parts, extension, trailers)
    framing, got, at = Chunked(), b"", 0
    while at < len(stream):
        assert not framing.done
        size = data.draw(st.integers(1, len(stream) - at))
        got += framing.feed(stream[at : at + size])
        at += size
    assert framing.done
    assert got == b"".join(parts)


@pytest.mark.parametrize(
    "stream",
    [
        b"zz\r\n",
        b"\r\n",
        b"-1\r\n",
        b"+1\r\na\r\n",
        b"0x1\r\na\r\n",
        b"1_0\r\n",
        b"1\r\nab\r\n",
        b"1 2\r\nab\r\n",
        b"f" * 16 + b"\r\n",
        b"1" * (MAX_LINE + 1),
        b"0\r\n" + (b"a: b\r\n" * MAX_LINE),
        b"0\r\n\r\nHTTP/1.1 200 OK\r\n",
    ],
)
def test_what_isnt_chunked_is_refused(stream):
    with pytest.raises(BadFraming):
        Chunked().feed(stream)


def test_an_end_before_the_end_is_refused():
    cut = Chunked()
    cut.feed(b"5\r\nab")
    for framing in (cut, Chunked(), Sized(3)):
        with pytest.raises(BadFraming, match="closed the connection"):
            framing.end()


def test_bodies_with_a_length_or_none():
    sized, endless = Sized(3), Endless()
    assert (sized.feed(b"ab"), sized.done, sized.feed(b"c"), sized.done) == (
        b"ab",
        False,
        b"c",
        True,
    )
    sized.end()
    assert (endless.feed(b"ab"), endless.done) == (b"ab", False)
    endless.end()
    assert endless.done
    with pytest.raises(BadFraming):
        Sized(1).feed(b"ab")
