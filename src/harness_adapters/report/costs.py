"""The cost ledger as a section of the page."""

from __future__ import annotations

from harness_adapters.evaluation.cost import Entry, Ledger, money
from harness_adapters.report.markup import cell, section, table
from harness_adapters.report.svg import number, safe


def cost(ledger: Ledger) -> str:
    """What the run took, by phase, harness and arm; dollars where prices are set."""
    priced = ledger.total.dollars is not None
    head = ["phase", "harness", "arm", ">sessions", ">solved", ">engine s", ">prompt", ">cached",
            ">output", ">CPU s", ">clock min"]  # fmt: skip
    if priced:
        head += [">cost", ">per session", ">per solved"]
    rows = "".join(_row(entry, priced=priced) for entry in [*ledger.entries, ledger.total])
    if priced:
        note = "Dollars follow from the prices in the settings (price.*)."
        if ledger.dollars_per_point is not None:
            note += f" The whole run cost {money(ledger.dollars_per_point)} per point gained."
    else:
        note = (
            "No prices are set: with --set price.engine_hour=2.50, say, this table shows dollars."
        )
    note += (
        " Engine seconds overlap, clock minutes don't: an hour of engine is charged by the clock "
        "and shared out by engine seconds. Prompt tokens count what the cache held as well."
    )
    return section(
        "cost", "Cost", f'<p class="note">{safe(note)}</p>' + table(head, rows, plain=True)
    )


def _row(entry: Entry, *, priced: bool) -> str:
    names = "".join(f"<td>{safe(name)}</td>" for name in (entry.phase, entry.harness, entry.arm))
    values: list[object] = [
        f"{entry.sessions:,}",
        f"{entry.solved:,}",
        f"{entry.engine_seconds:,.0f}",
        number(entry.prompt_tokens),
        number(entry.cached_tokens),
        number(entry.output_tokens),
        f"{entry.cpu_seconds:,.0f}",
        f"{entry.clock_seconds / 60:,.1f}",
    ]
    if priced:
        for dollars in (entry.dollars, entry.dollars_per_session, entry.dollars_per_solved):
            values.append("" if dollars is None else money(dollars))
    return f"<tr>{names}{''.join(cell(value) for value in values)}</tr>"
