"""Questions about CSV and JSON files."""

from __future__ import annotations

import json
import random

from harness_adapters.tasks.starter.family import (
    NOUNS,
    PEOPLE,
    Draft,
    Family,
    answer_is,
    draft,
    lines_equal,
    number_in_file,
    say,
)
from harness_adapters.tasks.task import Shell

_CITIES = ("paris", "london", "berlin", "rome", "madrid", "tokyo")
_NUMBERS = ("points", "amount", "price", "count", "score", "weight")


def _rows(rng: random.Random, count: int, numbers: int, cities: bool) -> list[list[str]]:
    """Rows of name, (city,) numbers."""
    return [
        [rng.choice(PEOPLE)]
        + ([rng.choice(_CITIES)] if cities else [])
        + [str(rng.randint(2, 99)) for _ in range(numbers)]
        for _ in range(count)
    ]


def _csv(rows: list[list[str]], header: list[str] | None = None) -> list[str]:
    return [",".join(row) for row in ([header] if header else []) + rows]


def _sum(rng: random.Random, level: int) -> Draft:
    """Sum, largest or smallest value of a column."""
    name, target = rng.sample(NOUNS, 2)
    file, out = f"{name}.csv", f"{target}.txt"
    names = rng.sample(_NUMBERS, 3)
    if level == 1:
        rows = _rows(rng, rng.randint(5, 12), 1, cities=False)
        column = names[0]
        instruction = say(
            rng,
            f"Compute the sum of the column {column} (column 2) in {file} and write it to {out}.",
            f"Add up column 2 ({column}) of {file} with awk and write the sum to {out}.",
            f"What is the total of the second column, {column}, in {file}? Write it to {out}.",
        )
        return draft(
            instruction,
            {file: _csv(rows, ["name", column])},
            f"awk -F, '{{s+=$2}} END {{print s}}' {file} > {out}",
            number_in_file(out, sum(int(row[1]) for row in rows)),
        )
    position = rng.randint(1, 3)
    column = names[position - 1]
    if level == 2:
        rows = _rows(rng, rng.randint(5, 12), 3, cities=False)
        header = ["name", *names]
        values = [int(row[position]) for row in rows]
        what, value, command = rng.choice(
            [
                ("sum", sum(values), f"awk -F, '{{s+=${position + 1}}} END {{print s}}' {file}"),
                (
                    "largest value",
                    max(values),
                    f"tail -n +2 {file} | cut -d, -f{position + 1} | sort -n | tail -n 1",
                ),
                (
                    "smallest value",
                    min(values),
                    f"tail -n +2 {file} | cut -d, -f{position + 1} | sort -n | head -n 1",
                ),
            ]
        )
        instruction = say(
            rng,
            f"The columns of {file} are {','.join(header)}. Write the {what} of {column} to {out}.",
            f"{file} has the columns {','.join(header)}. Find the {what} of the column {column} "
            f"and write it to {out}.",
        )
        return draft(
            instruction,
            {file: _csv(rows, header)},
            f"{command} > {out}",
            number_in_file(out, value),
        )
    person = rng.choice(PEOPLE)
    rows = _rows(rng, rng.randint(6, 12), 3, cities=False)
    rows += [[person, *(str(rng.randint(2, 99)) for _ in range(3))] for _ in range(2)]
    rng.shuffle(rows)
    instruction = say(
        rng,
        f"Compute the sum of {column} for {person} in {file} and write it to {out}.",
        f"Add up the column {column} of all rows of {person} in {file}. Write the sum to {out}.",
    )
    return draft(
        instruction,
        {file: _csv(rows, ["name", *names])},
        f"grep {person} {file} | awk -F, '{{s+=${position + 1}}} END {{print s}}' > {out}",
        number_in_file(out, sum(int(row[position]) for row in rows if row[0] == person)),
        look=f"head -n 1 {file}",
    )


def _count(rng: random.Random, level: int) -> Draft:
    """Count rows that meet a condition."""
    file = f"{rng.choice(NOUNS)}.csv"
    column = rng.choice(_NUMBERS)
    city, person = rng.choice(_CITIES), rng.choice(PEOPLE)
    rows = _rows(rng, rng.randint(8, 18), 1, cities=True)
    rows += [[person, city, str(rng.randint(2, 99))] for _ in range(3)]
    rng.shuffle(rows)
    if level == 1:
        word, index = rng.choice([(city, 1), (person, 0)])
        instruction = say(
            rng,
            f"Count the rows of {file} with {word} and write the number to answer.txt.",
            f"How many lines of {file} contain {word}? Write the number to answer.txt.",
            f"Use grep -c to count the rows of {word} in {file}. Write the number to answer.txt.",
        )
        return draft(
            instruction,
            {file: _csv(rows, ["name", "city", column])},
            f"grep -c {word} {file} > answer.txt",
            number_in_file("answer.txt", sum(row[index] == word for row in rows)),
        )
    bound = rng.randint(25, 75)
    above = rng.random() < 0.5
    compare, sign = ("more", ">") if above else ("less", "<")
    rows += [[person, city, str(bound + step if above else bound - step)] for step in (1, 5, 9)]
    hits = [row for row in rows if (int(row[2]) > bound if above else int(row[2]) < bound)]
    shape = f"Each line of {file} is name,city,{column}."
    if level == 2:
        instruction = say(
            rng,
            f"{shape} Count the lines with {column} {compare} than {bound} "
            "and write the number to answer.txt.",
            f"{shape} How many have {compare} than {bound} in the third column? "
            "Write the number to answer.txt.",
        )
        command = f"awk -F, '$3 {sign} {bound}' {file} | wc -l > answer.txt"
        found = len(hits)
    else:
        instruction = say(
            rng,
            f"{shape} Count the lines of {city} with {column} {compare} than {bound} "
            "and write the number to answer.txt.",
            f"{shape} How many lines with {city} have {compare} than {bound} in the third column? "
            "Write the number to answer.txt.",
        )
        command = f"grep {city} {file} | awk -F, '$3 {sign} {bound}' | wc -l > answer.txt"
        found = sum(row[1] == city for row in hits)
    return draft(instruction, {file: _csv(rows)}, command, number_in_file("answer.txt", found))


def _column(rng: random.Random, level: int) -> Draft:
    """Write columns to a file."""
    name, target = rng.sample(NOUNS, 2)
    file, out = f"{name}.csv", f"{target}.txt"
    numbers = rng.sample(_NUMBERS, 2)
    header = ["name", "city", *numbers]
    rows = _rows(rng, rng.randint(5, 10), 2, cities=True)
    index = rng.randrange(4)
    ordinal = ("first", "second", "third", "fourth")[index]
    if level == 1:
        instruction = say(
            rng,
            f"Write the {ordinal} column of {file} to {out}.",
            f"Use cut to write column {index + 1} of {file} to {out}.",
            f"Take only the {ordinal} column of {file} and write it to {out}.",
        )
        command = f"cut -d, -f{index + 1} {file} > {out}"
        return draft(
            instruction,
            {file: _csv(rows)},
            command,
            lines_equal(out, [row[index] for row in rows]),
        )
    if level == 2:
        columns = ",".join(header)
        if rng.random() < 0.5:
            instruction = say(
                rng,
                f"The columns of {file} are {columns}. Write the column {header[index]} without "
                f"the header line to {out}.",
                f"{file} starts with the header {columns}. Skip it and write the {header[index]} "
                f"of each row to {out}.",
            )
            command = f"tail -n +2 {file} | cut -d, -f{index + 1} > {out}"
            wanted = [row[index] for row in rows]
        else:
            first, second = sorted(rng.sample(range(4), 2))
            instruction = say(
                rng,
                f"The columns of {file} are {columns}. Write only the columns {header[first]} and "
                f"{header[second]} to {out}, with the header.",
                f"{file} has the columns {columns}. Keep only {header[first]} and "
                f"{header[second]} of every line and write them to {out}.",
            )
            command = f"cut -d, -f{first + 1},{second + 1} {file} > {out}"
            wanted = [f"{row[first]},{row[second]}" for row in [header, *rows]]
        return draft(instruction, {file: _csv(rows, header)}, command, lines_equal(out, wanted))
    index = rng.randrange(2)
    rows += [rng.choice(rows) for _ in range(4)]
    rng.shuffle(rows)
    if rng.random() < 0.5:
        header = [header[1], header[0], *numbers]
        rows = [[row[1], row[0], *row[2:]] for row in rows]
    instruction = say(
        rng,
        f"Write the different values of the column {header[index]} in {file}, sorted and without "
        f"the header, to {out}.",
        f"Which values has the column {header[index]} of {file}? Write each once, sorted, without "
        f"the header, to {out}.",
    )
    return draft(
        instruction,
        {file: _csv(rows, header)},
        f"tail -n +2 {file} | cut -d, -f{index + 1} | sort -u > {out}",
        lines_equal(out, sorted({row[index] for row in rows})),
        look=f"head -n 2 {file}",
    )


def _json(rng: random.Random, level: int) -> Draft:
    """Read a value from a JSON file."""
    name, outer, other, *keys = rng.sample(NOUNS, 7)
    file = f"{name}.json"
    key = rng.choice(keys)

    def value() -> int | str:
        return rng.randint(100, 9999) if rng.random() < 0.5 else rng.choice(PEOPLE)

    def values() -> dict[str, int | str]:
        return {each: value() for each in keys}

    if level == 1:
        flat = values()
        data: dict[str, object] = {**flat}
        answer = flat[key]
        expression = f"['{key}']"
        instruction = say(
            rng,
            f"Read {file} and write the value of {key} to answer.txt.",
            f"What is the value of {key} in {file}? Write it to answer.txt.",
            f"Use python3 and json to write the value of the key {key} in {file} to answer.txt.",
        )
    elif level == 2:
        groups = {outer: values(), other: values()}
        data = {**groups}
        answer = groups[outer][key]
        expression = f"['{outer}']['{key}']"
        instruction = say(
            rng,
            f"Read {file} and write the value of {outer}.{key} to answer.txt.",
            f"What is the value of {key} inside {outer} in {file}? Write it to answer.txt.",
        )
    else:
        lists = {each: [rng.randint(3, 99) for _ in range(rng.randint(4, 7))] for each in keys}
        data = {**lists}
        what, function, answer = rng.choice(
            [
                ("sum of the numbers", "sum", sum(lists[key])),
                ("largest number", "max", max(lists[key])),
                ("smallest number", "min", min(lists[key])),
                ("number of items", "len", len(lists[key])),
            ]
        )
        instruction = say(
            rng,
            f"Write the {what} in the list {key} of {file} to answer.txt.",
            f"{file} holds several lists. Find the {what} in {key} and write it to answer.txt.",
        )
        code = f"import json; print({function}(json.load(open('{file}'))['{key}']))"
        return Draft(
            instruction,
            {file: json.dumps(data, indent=1) + "\n"},
            (Shell(f'python3 -c "{code}" > answer.txt'),),
            (number_in_file("answer.txt", answer),),
        )
    code = f"import json; print(json.load(open('{file}')){expression})"
    return Draft(
        instruction,
        {file: json.dumps(data, indent=1) + "\n"},
        (Shell(f'python3 -c "{code}" > answer.txt'),),
        (answer_is("answer.txt", str(answer)),),
    )


FAMILIES = (
    Family("csv_sum", "tables", _sum),
    Family("csv_count", "tables", _count),
    Family("csv_column", "tables", _column),
    Family("json_value", "tables", _json),
)
