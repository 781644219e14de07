"""Questions that need reading a text or running a program."""

from __future__ import annotations

import random

from harness_adapters.tasks.starter.family import (
    NOUNS,
    PEOPLE,
    Draft,
    Family,
    answer_is,
    draft,
    number_in_file,
    say,
)


def _fact(rng: random.Random, level: int) -> Draft:
    """Find a fact in a text."""
    name, *things = rng.sample(NOUNS, 6)
    file = f"{name}.txt"
    prices = dict(zip(things, rng.sample(range(12, 990), 5), strict=True))
    owners = dict(zip(things, rng.sample(PEOPLE, 5), strict=True))
    thing = rng.choice(things)
    price_facts = [f"The price of the {each} is {prices[each]}." for each in things]
    owner_facts = [f"The owner of the {each} is {owners[each]}." for each in things]
    if level == 1:
        attribute, facts, answer = rng.choice(
            [
                ("price", price_facts, str(prices[thing])),
                ("owner", owner_facts, owners[thing]),
            ]
        )
        instruction = say(
            rng,
            f"Read {file}. Write the {attribute} of the {thing} to answer.txt.",
            f"Find the line about the {thing} in {file} with grep and write its {attribute} "
            "to answer.txt.",
        )
        look = f"grep {thing} {file}"
    elif level == 2:
        facts = price_facts + owner_facts
        rng.shuffle(facts)
        attribute, answer = rng.choice([("price", str(prices[thing])), ("owner", owners[thing])])
        instruction = say(
            rng,
            f"According to {file}, what is the {attribute} of the {thing}? Write it to answer.txt.",
            f"Look up the {attribute} of the {thing} in {file} and write it to answer.txt.",
        )
        look = f"grep {thing} {file}"
    else:
        facts = price_facts + owner_facts
        rng.shuffle(facts)
        if rng.random() < 0.5:
            instruction = say(
                rng,
                f"Read {file}. What is the price of the thing that {owners[thing]} owns? "
                "Write it to answer.txt.",
                f"According to {file}, {owners[thing]} owns one thing. Write its price "
                "to answer.txt.",
            )
            answer = str(prices[thing])
        else:
            instruction = say(
                rng,
                f"Read {file}. Who owns the thing with the price {prices[thing]}? "
                "Write the name to answer.txt.",
                f"According to {file}, one thing has the price {prices[thing]}. Write the name "
                "of its owner to answer.txt.",
            )
            answer = owners[thing]
        look = f"cat {file}"
    return draft(
        instruction,
        {file: facts},
        f"echo {answer} > answer.txt",
        answer_is("answer.txt", answer),
        look=look,
    )


def _run(rng: random.Random, level: int) -> Draft:
    """Run a program and keep what it prints."""
    name, target = rng.sample(NOUNS, 2)
    file, out = f"{name}.py", f"{target}.txt"
    limit, factor, shift = rng.randint(5, 40), rng.randint(2, 9), rng.randint(1, 50)
    constant = rng.choice(["LIMIT", "COUNT", "SIZE", "STEPS", "NUMBER"])
    body = [
        f"total = {shift}",
        f"for i in range({constant}):",
        f"    total += i * {factor}",
        "print(total)",
    ]

    def total(count: int) -> int:
        return shift + sum(i * factor for i in range(count))

    if level == 1:
        files = {file: [f"{constant} = {limit}", *body]}
        instruction = say(
            rng,
            f"Run {file} and write its output to {out}.",
            f"Run the program {file} with python3 and save what it prints in {out}.",
            f"What does {file} print? Run it with python3 and write the output to {out}.",
        )
        return draft(
            instruction, files, f"python3 {file} > {out}", number_in_file(out, total(limit))
        )
    if level == 2:
        files = {file: ["import sys", f"{constant} = int(sys.argv[1])", *body]}
        instruction = say(
            rng,
            f"Run {file} with the argument {limit} and write its output to {out}.",
            f"What does {file} print for the argument {limit}? Run it and write the output "
            f"to {out}.",
        )
        return draft(
            instruction,
            files,
            f"python3 {file} {limit} > {out}",
            number_in_file(out, total(limit)),
        )
    files = {file: [f"{constant} = {limit}", *body]}
    new = limit + rng.randint(1, 30)
    instruction = say(
        rng,
        f"In {file}, change {constant} from {limit} to {new}. Then run it and write the output "
        f"to {out}.",
        f"Set {constant} = {new} instead of {limit} in {file}, run the program, and write its "
        f"output to {out}.",
    )
    command = (
        f"sed -i 's/{constant} = {limit}/{constant} = {new}/' {file} && python3 {file} > {out}"
    )
    return draft(instruction, files, command, number_in_file(out, total(new)))


FAMILIES = (
    Family("fact_qa", "questions", _fact),
    Family("run_program", "questions", _run),
)
