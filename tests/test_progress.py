"""Several who report at once share one bar."""

from harness_adapters.progress import Labelled


class Told:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.units = 0

    def phase(self, name: str, total: int | None = None) -> None:
        self.lines.append(f"phase {name}")

    def advance(self, units: int = 1, note: str = "") -> None:
        self.units += units

    def say(self, text: str) -> None:
        self.lines.append(text)


def test_only_the_training_moves_the_shared_bar() -> None:
    told = Told()
    one, other = Labelled(told, "pi"), Labelled(told, "hermes")
    one.phase("measuring the base", 8)
    one.advance(8)
    assert (told.lines, told.units) == (["pi: measuring the base"], 0)
    one.phase("training", 64)
    other.phase("canary")
    one.advance(3)
    other.advance(5)
    one.say("step 1/9")
    assert told.lines[1:] == ["hermes: canary", "pi: step 1/9"]
    assert told.units == 3
