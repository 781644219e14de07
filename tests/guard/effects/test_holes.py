from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.guard.effects.holes import (
    ALL,
    ANY,
    ONE,
    OPAQUE,
    SET,
    SET_END,
    STAR,
    alternatives,
    choices,
    degraded,
    from_glob,
    known,
    paths_meet,
)

names = st.text(alphabet="abc.", min_size=1, max_size=4)
paths = st.lists(names, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(paths, paths)
def test_known_paths_meet_when_they_are_equal(one, other):
    assert paths_meet(one, other) is (one == other)


@given(paths, st.integers(0, 3), st.sampled_from([ALL, ANY]))
def test_a_component_that_is_a_hole_meets_what_it_hides(path, place, hole):
    parts = path.split("/")
    parts[1 + place % (len(parts) - 1)] = hole
    assert paths_meet("/".join(parts), path)


@given(paths, st.integers(1, 20))
def test_a_path_with_any_tail_meets_the_whole(path, cut):
    assert paths_meet(path[: cut % len(path)] + ANY, path)


def test_what_holes_leave_out():
    assert not paths_meet(f"/a/{STAR}.py", "/a/b.txt")
    assert not paths_meet(f"/a/{STAR}", "/a/b/c")
    assert not paths_meet(f"/{STAR}", "/.b")
    assert paths_meet(f"/{ALL}", "/.b")
    assert not paths_meet(f"/{ONE}", "/ab")
    assert paths_meet(f"/{SET}a-c{SET_END}x", "/bx")
    assert not paths_meet(f"/{SET}!b{SET_END}x", "/bx")
    assert paths_meet(from_glob("/t/**"), "/t/x/y")


@given(st.lists(names, min_size=1, max_size=5, unique=True))
def test_alternatives_are_told_apart_again(values):
    assert choices("x" + alternatives(values) + "y") == [f"x{v}y" for v in values]


def test_too_many_alternatives_are_opaque():
    assert alternatives([str(n) for n in range(1000)]) == OPAQUE


def test_a_filter_launders_no_path():
    assert degraded("plain") == OPAQUE
    assert degraded(f"/s/{ANY}") == OPAQUE
    assert degraded(ANY) == ANY
    assert known("a") and not known(ANY)
