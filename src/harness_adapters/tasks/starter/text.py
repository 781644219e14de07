"""Reading and writing plain text: create, count, sort, pick lines."""

from __future__ import annotations

import random

from harness_adapters.tasks.starter.family import (
    NOUNS,
    PEOPLE,
    Draft,
    Family,
    answer_is,
    draft,
    file_equals,
    lines_equal,
    number_in_file,
    say,
    sentence,
    text_of,
)
from harness_adapters.tasks.task import WriteFile


def _write(rng: random.Random, level: int) -> Draft:
    """Create text files."""
    name, other = rng.sample(NOUNS, 2)
    if level == 1:
        file, text = f"{name}.txt", sentence(rng, 3)
        instruction = say(
            rng,
            f"Create the file {file} with this line: {text}",
            f"Write the text '{text}' to a new file {file}.",
            f"Make a file named {file} that contains exactly this line: {text}",
        )
        return Draft(instruction, {}, (WriteFile(file, f"{text}\n"),), (file_equals(file, text),))
    if level == 2:
        file, text = f"{other}/{name}.txt", sentence(rng, 5)
        instruction = say(
            rng,
            f"Create the file {file} with this line: {text}",
            f"Make a directory {other} and in it a file {name}.txt with this line: {text}",
        )
        return Draft(instruction, {}, (WriteFile(file, f"{text}\n"),), (file_equals(file, text),))
    if rng.random() < 0.5:
        lines = [sentence(rng, 2) for _ in range(3)]
        file = f"{name}.txt"
        instruction = say(
            rng,
            f"Create {file} with these three lines: {lines[0]}, {lines[1]}, {lines[2]}. "
            "Leave out the commas.",
            f"Write three lines to {file}: first {lines[0]}, then {lines[1]}, then {lines[2]}.",
        )
        return Draft(
            instruction, {}, (WriteFile(file, text_of(lines)),), (lines_equal(file, lines),)
        )
    files = {f"{name}.txt": sentence(rng, 2), f"{other}.txt": sentence(rng, 2)}
    (first, first_text), (second, second_text) = files.items()
    instruction = say(
        rng,
        f"Create two files: {first} with the line {first_text} and {second} with the line "
        f"{second_text}",
        f"Write '{first_text}' to {first} and '{second_text}' to {second}.",
    )
    return Draft(
        instruction,
        {},
        tuple(WriteFile(path, f"{text}\n") for path, text in files.items()),
        tuple(file_equals(path, text) for path, text in files.items()),
    )


def _count(rng: random.Random, level: int) -> Draft:
    """Count lines, words or characters."""
    name, folder, target = rng.sample(NOUNS, 3)
    file, out = f"{name}.txt", f"{target}.txt"
    lines = [sentence(rng, rng.randint(1, 5)) for _ in range(rng.randint(5, 30))]
    counts = {
        "lines": ("-l", len(lines)),
        "words": ("-w", sum(len(line.split()) for line in lines)),
        "characters": ("-c", sum(len(line) + 1 for line in lines)),
    }
    if level < 3:
        unit = rng.choice(["lines", "words"] if level == 1 else list(counts))
        option, found = counts[unit]
        instruction = (
            say(
                rng,
                f"Count the {unit} in {file} with wc {option} and write the number to {out}.",
                f"Use wc {option} to count the {unit} of {file}. Write the number to {out}.",
                f"Count the {unit} in {file} and write only the number to {out}.",
            )
            if level == 1
            else say(
                rng,
                f"How many {unit} does {file} have? Write the number to {out}.",
                f"Write the number of {unit} in {file} to {out}.",
                f"Find out how many {unit} {file} has and write the number to {out}.",
            )
        )
        return draft(
            instruction, {file: lines}, f"wc {option} < {file} > {out}", number_in_file(out, found)
        )
    names = rng.sample([noun for noun in NOUNS if noun not in (name, folder, target)], 3)
    files = {
        f"{folder}/{each}.txt": [sentence(rng, rng.randint(1, 4)) for _ in range(rng.randint(3, 8))]
        for each in names
    }
    every = [line for lines in files.values() for line in lines]
    unit, option, found = rng.choice(
        [("lines", "-l", len(every)), ("words", "-w", sum(len(line.split()) for line in every))]
    )
    instruction = say(
        rng,
        f"Count the {unit} of all files in the directory {folder} together. "
        f"Write the total to {out}.",
        f"How many {unit} do the files {folder}/*.txt have in total? "
        f"Write only the number to {out}.",
    )
    return draft(
        instruction,
        files,
        f"cat {folder}/*.txt | wc {option} > {out}",
        number_in_file(out, found),
    )


def _sort(rng: random.Random, level: int) -> Draft:
    """Sort lines by letter or number, both ways."""
    name, target, other = rng.sample(NOUNS, 3)
    file, out = f"{name}.txt", f"{target}.txt"
    words = rng.sample(NOUNS, rng.randint(6, 12))
    while words == sorted(words):
        rng.shuffle(words)
    numbers = rng.sample(range(3, 2000), rng.randint(6, 12))
    if level == 1:
        instruction = say(
            rng,
            f"Sort the lines of {file} alphabetically and write the result to {out}.",
            f"Use sort to write the lines of {file} in alphabetical order to {out}.",
            f"Write the sorted lines of {file} to {out}.",
        )
        return draft(
            instruction, {file: words}, f"sort {file} > {out}", lines_equal(out, sorted(words))
        )
    if level == 2:
        order, option, lines, wanted = _sort_choice(rng, words, numbers)
        kind = "words" if option == "-r" else "numbers"
        instruction = say(
            rng,
            f"Sort the {kind} in {file} {order} and write them to {out}.",
            f"Write the {kind} of {file} {order}, one per line, to {out}.",
        )
        return draft(
            instruction,
            {file: lines},
            f"sort {option} {file} > {out}",
            lines_equal(out, wanted),
        )
    if rng.random() < 0.5:
        count = rng.randint(2, 5)
        which, option = rng.choice([("largest", "-nr"), ("smallest", "-n")])
        wanted = [str(n) for n in sorted(numbers, reverse=option == "-nr")[:count]]
        instruction = say(
            rng,
            f"Write the {count} {which} numbers of {file} to {out}, the {which} first.",
            f"Find the {count} {which} numbers in {file}. Write them to {out}, {which} first.",
        )
        return draft(
            instruction,
            {file: [str(number) for number in numbers]},
            f"sort {option} {file} | head -n {count} > {out}",
            lines_equal(out, wanted),
        )
    more = rng.sample(words, 3) + rng.sample(NOUNS, 4)
    rng.shuffle(more)
    second = f"{other}.txt"
    instruction = say(
        rng,
        f"Sort the lines of {file} and {second} together, each different line only once, "
        f"and write them to {out}.",
        f"Write all different lines of {file} and {second} in alphabetical order to {out}.",
    )
    return draft(
        instruction,
        {file: words, second: more},
        f"sort -u {file} {second} > {out}",
        lines_equal(out, sorted({*words, *more})),
    )


def _sort_choice(
    rng: random.Random, words: list[str], numbers: list[int]
) -> tuple[str, str, list[str], list[str]]:
    """(order in words, option of sort, lines, sorted lines)."""
    texts = [str(number) for number in numbers]
    return rng.choice(
        [
            ("from small to large", "-n", texts, sorted(texts, key=int)),
            ("from large to small", "-nr", texts, sorted(texts, key=int, reverse=True)),
            ("in reverse alphabetical order", "-r", words, sorted(words, reverse=True)),
        ]
    )


def _unique(rng: random.Random, level: int) -> Draft:
    """Repeated and different lines."""
    name, target = rng.sample(NOUNS, 2)
    file, out = f"{name}.txt", f"{target}.txt"
    pool = rng.sample(PEOPLE, rng.randint(5, 9))
    once, twice = pool[:2], pool[2:]
    lines = once + twice * 2 + [rng.choice(twice) for _ in range(rng.randint(2, 8))]
    rng.shuffle(lines)
    if level == 1:
        instruction = say(
            rng,
            f"Count how many different lines {file} has and write the number to {out}.",
            f"Use sort -u and wc -l to count the different lines of {file}. "
            f"Write the number to {out}.",
            f"How many different names are in {file}? Write the number to {out}.",
        )
        return draft(
            instruction,
            {file: lines},
            f"sort -u {file} | wc -l > {out}",
            number_in_file(out, len(pool)),
        )
    if level == 2:
        meaning, option, wanted = rng.choice(
            [("more than once", "-d", sorted(twice)), ("only once", "-u", sorted(once))]
        )
        instruction = say(
            rng,
            f"Write the lines that occur {meaning} in {file} to {out}, sorted, each one time.",
            f"Which names are in {file} {meaning}? Write them to {out}, sorted, each one time.",
        )
        return draft(
            instruction,
            {file: lines},
            f"sort {file} | uniq {option} > {out}",
            lines_equal(out, wanted),
        )
    often = rng.choice(pool)
    lines += [often] * 9
    rng.shuffle(lines)
    instruction = say(
        rng,
        f"Find the line that occurs most often in {file} and write it to {out}.",
        f"Which name is most frequent in {file}? Write the name to {out}.",
    )
    return draft(
        instruction,
        {file: lines},
        f"sort {file} | uniq -c | sort -nr | head -n 1 | awk '{{print $2}}' > {out}",
        answer_is(out, often),
    )


def _pick(rng: random.Random, level: int) -> Draft:
    """Lines by their number."""
    name, target = rng.sample(NOUNS, 2)
    file, out = f"{name}.txt", f"{target}.txt"
    lines = [sentence(rng, 3) for _ in range(rng.randint(7, 14))]
    if level == 1:
        number = rng.randint(2, 7)
        instruction = say(
            rng,
            f"Write line {number} of {file} to {out}.",
            f"Use sed -n to write line {number} of {file} to {out}.",
            f"Take only line number {number} of {file} and write it to {out}.",
        )
        return draft(
            instruction,
            {file: lines},
            f"sed -n {number}p {file} > {out}",
            file_equals(out, lines[number - 1]),
        )
    start = rng.randint(2, 4)
    stop = start + rng.randint(1, 3)
    if level == 2:
        instruction = say(
            rng,
            f"Write lines {start} to {stop} of {file} to {out}.",
            f"Copy only the lines from {start} to {stop} of {file} into {out}.",
        )
        command = f"sed -n {start},{stop}p {file} > {out}"
        return draft(instruction, {file: lines}, command, lines_equal(out, lines[start - 1 : stop]))
    if rng.random() < 0.5:
        instruction = say(
            rng,
            f"Write line {start} of {file} in upper case to {out}.",
            f"Take line {start} of {file}, change it to upper case, and write it to {out}.",
        )
        command = f"sed -n {start}p {file} | tr a-z A-Z > {out}"
        return draft(
            instruction, {file: lines}, command, file_equals(out, lines[start - 1].upper())
        )
    part = lines[start - 1 : stop + 2]
    instruction = say(
        rng,
        f"Sort lines {start} to {stop + 2} of {file} and write them to {out}.",
        f"Take the lines from {start} to {stop + 2} of {file}, sort them, and write them to {out}.",
    )
    command = f"sed -n {start},{stop + 2}p {file} | sort > {out}"
    return draft(instruction, {file: lines}, command, lines_equal(out, sorted(part)))


def _ends(rng: random.Random, level: int) -> Draft:
    """First and last lines."""
    name, target = rng.sample(NOUNS, 2)
    file, out = f"{name}.txt", f"{target}.txt"
    lines = [sentence(rng, 3) for _ in range(rng.randint(9, 16))]
    count = rng.randint(2, 6)
    tool, which = rng.choice([("head", "first"), ("tail", "last")])
    part = lines[:count] if tool == "head" else lines[-count:]
    if level == 3:
        done, command, wanted = rng.choice(
            [
                ("sort them", "sort", sorted(part)),
                ("change them to upper case", "tr a-z A-Z", [line.upper() for line in part]),
            ]
        )
        instruction = say(
            rng,
            f"Take the {which} {count} lines of {file}, {done}, and write them to {out}.",
            f"From {file} take the {which} {count} lines, {done}, and write the result to {out}.",
        )
        return draft(
            instruction,
            {file: lines},
            f"{tool} -n {count} {file} | {command} > {out}",
            lines_equal(out, wanted),
        )
    instruction = (
        say(
            rng,
            f"Use {tool} -n {count} to write the {which} {count} lines of {file} to {out}.",
            f"Write the {which} {count} lines of {file} to {out} with {tool} -n.",
        )
        if level == 1
        else say(
            rng,
            f"Write the {which} {count} lines of {file} to {out}.",
            f"Copy only the {which} {count} lines of {file} into {out}.",
        )
    )
    command = f"{tool} -n {count} {file} > {out}"
    return draft(instruction, {file: lines}, command, lines_equal(out, part))


FAMILIES = (
    Family("write_text", "text", _write),
    Family("count_text", "text", _count),
    Family("sort_lines", "text", _sort),
    Family("unique_lines", "text", _unique),
    Family("pick_lines", "text", _pick),
    Family("end_lines", "text", _ends, test_only=True),
)
