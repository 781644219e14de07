"""Questions about log files: counts, fields, events."""

from __future__ import annotations

import random

from harness_adapters.tasks.starter.family import (
    NOUNS,
    Draft,
    Family,
    draft,
    file_equals,
    lines_equal,
    number_in_file,
    say,
)

_SEVERITIES = ("ERROR", "WARN", "DEBUG", "INFO")
_EVENTS = ("started", "stopped", "failed", "timeout", "closed", "opened")
_ORDINALS = ("first", "second", "third", "fourth")


def _log(rng: random.Random, lines: int, services: list[str], *planted: str) -> list[str]:
    """Lines of `time severity service event`; each planted rest of a line occurs at least once."""
    rests = [
        f"{rng.choice(_SEVERITIES)} {rng.choice(services)} {rng.choice(_EVENTS)}"
        for _ in range(lines)
    ]
    rests += planted
    rng.shuffle(rests)
    minute = rng.randint(0, 300)
    log = []
    for rest in rests:
        minute += rng.randint(1, 9)
        log.append(f"{minute // 60:02d}:{minute % 60:02d} {rest}")
    return log


def _count(rng: random.Random, level: int) -> Draft:
    """Count matching lines."""
    name, *services = rng.sample(NOUNS, 5)
    severity, event, service = rng.choice(_SEVERITIES), rng.choice(_EVENTS), rng.choice(services)
    planted = [f"{severity} {service} {event}"] * 3
    first, second = rng.sample([severity, event, service], 2)
    file = f"{name}.log"
    if level == 3:
        others = rng.sample([noun for noun in NOUNS if noun not in (name, *services)], 3)
        files = {
            f"{name}/{other}.log": _log(rng, rng.randint(6, 12), services, planted[0])
            for other in others
        }
        lines = [line for log in files.values() for line in log]
        found = sum(first in line and second in line for line in lines)
        instruction = say(
            rng,
            f"Count the lines in all files of the directory {name} that contain both {first} "
            f"and {second}. Write the total to answer.txt.",
            f"How many lines in {name}/*.log contain both {first} and {second}? "
            "Write the total number to answer.txt.",
        )
        command = f"cat {name}/*.log | grep {first} | grep -c {second} > answer.txt"
        return draft(instruction, files, command, number_in_file("answer.txt", found))
    log = _log(rng, rng.randint(10, 24), services, *planted)
    if level == 1:
        instruction = say(
            rng,
            f"Count the lines in {file} that contain {first} and write the number to answer.txt.",
            f"How many lines of {file} contain {first}? Write the number to answer.txt.",
            f"Use grep -c to count the lines with {first} in {file}. "
            "Write the number to answer.txt.",
        )
        command = f"grep -c {first} {file} > answer.txt"
        found = sum(first in line for line in log)
    elif rng.random() < 0.5:
        instruction = say(
            rng,
            f"Count the lines in {file} that contain both {first} and {second} "
            "and write the number to answer.txt.",
            f"How many lines of {file} contain {first} and also {second}? "
            "Write the number to answer.txt.",
        )
        command = f"grep {first} {file} | grep -c {second} > answer.txt"
        found = sum(first in line and second in line for line in log)
    else:
        instruction = say(
            rng,
            f"Count the lines in {file} that do not contain {first} "
            "and write the number to answer.txt.",
            f"How many lines of {file} are without {first}? Write the number to answer.txt.",
        )
        command = f"grep -vc {first} {file} > answer.txt"
        found = sum(first not in line for line in log)
    return draft(instruction, {file: log}, command, number_in_file("answer.txt", found))


def _field(rng: random.Random, level: int) -> Draft:
    """Write one word of each line."""
    name, target, *services = rng.sample(NOUNS, 6)
    severity = rng.choice(_SEVERITIES)
    file, out = f"{name}.log", f"{target}.txt"
    column = rng.randint(1, 4)
    ordinal = _ORDINALS[column - 1]
    planted = [f"{severity} {service} {rng.choice(_EVENTS)}" for service in services[:3]]
    log = _log(rng, rng.randint(6, 14), services, *planted)
    if level == 1:
        instruction = say(
            rng,
            f"Write the {ordinal} word of every line of {file} to {out}.",
            f"Use awk to write word {column} of each line of {file} to {out}.",
            f"Take the {ordinal} word of each line in {file} and write them to {out}.",
        )
        command = f"awk '{{print ${column}}}' {file} > {out}"
        wanted = [line.split()[column - 1] for line in log]
    elif level == 2:
        instruction = say(
            rng,
            f"Write the {ordinal} word of every line of {file} that contains {severity} to {out}.",
            f"Find the lines with {severity} in {file} and write word {column} of each to {out}.",
        )
        command = f"grep {severity} {file} | awk '{{print ${column}}}' > {out}"
        wanted = [line.split()[column - 1] for line in log if severity in line]
    else:
        column, noun = rng.choice([(3, "names"), (4, "events")])
        log += [f"06:{rng.randint(10, 59)} {severity} {services[0]} {rng.choice(_EVENTS)}"]
        instruction = say(
            rng,
            f"Write the different {noun} (word {column}) of the {severity} lines in {file}, "
            f"sorted, to {out}.",
            f"From the lines with {severity} in {file} take word {column}, sort, "
            f"drop repeats, and write the result to {out}.",
        )
        command = f"grep {severity} {file} | awk '{{print ${column}}}' | sort -u > {out}"
        wanted = sorted({line.split()[column - 1] for line in log if severity in line})
    return draft(instruction, {file: log}, command, lines_equal(out, wanted))


def _event(rng: random.Random, level: int) -> Draft:
    """Write the first or last matching line, or a word of it."""
    name, target, *services = rng.sample(NOUNS, 6)
    severity, event = rng.choice(_SEVERITIES), rng.choice(_EVENTS)
    word = rng.choice([severity, event, services[0]])
    file, out = f"{name}.log", f"{target}.txt"
    log = _log(rng, rng.randint(8, 16), services, *[f"{severity} {services[0]} {event}"] * 3)
    matches = [line for line in log if word in line]
    if level == 1:
        instruction = say(
            rng,
            f"Use grep and head to write the first line of {file} that contains {word} to {out}.",
            f"Write the first line with {word} in {file} to {out} (grep, then head -n 1).",
        )
        return draft(
            instruction,
            {file: log},
            f"grep {word} {file} | head -n 1 > {out}",
            file_equals(out, matches[0]),
        )
    tool, which, line = rng.choice([("head", "first", matches[0]), ("tail", "last", matches[-1])])
    if level == 2:
        instruction = say(
            rng,
            f"Write the {which} line of {file} that contains {word} to {out}.",
            f"Find the {which} line with {word} in {file} and write it to {out}.",
        )
        command = f"grep {word} {file} | {tool} -n 1 > {out}"
        return draft(instruction, {file: log}, command, file_equals(out, line))
    column = rng.choice([1, 4])
    instruction = say(
        rng,
        f"Write the {_ORDINALS[column - 1]} word of the {which} line with {word} in {file} "
        f"to {out}.",
        f"Find the {which} line of {file} that contains {word} and write word {column} of it "
        f"to {out}.",
    )
    command = f"grep {word} {file} | {tool} -n 1 | awk '{{print ${column}}}' > {out}"
    return draft(instruction, {file: log}, command, file_equals(out, line.split()[column - 1]))


FAMILIES = (
    Family("log_count", "logs", _count),
    Family("log_field", "logs", _field),
    Family("log_event", "logs", _event, test_only=True),
)
