"""Finding, moving and removing files; settings in files."""

from __future__ import annotations

import random

from harness_adapters.tasks.starter.family import (
    NOUNS,
    Draft,
    Family,
    answer_is,
    draft,
    files_state,
    number_in_file,
    say,
    text_of,
)
from harness_adapters.tasks.task import Shell

_KEYS = ("port", "timeout", "limit", "size", "speed", "level", "users", "depth")


def _notes(rng: random.Random, words: list[str], low: int = 3, high: int = 6) -> list[str]:
    return [" ".join(rng.choice(words) for _ in range(3)) for _ in range(rng.randint(low, high))]


def _plant(rng: random.Random, lines: list[str], word: str) -> None:
    """Put `word` at the end of one of the lines."""
    lines[rng.randrange(len(lines))] += f" {word}"


def _find(rng: random.Random, level: int) -> Draft:
    """Find the file that holds a word."""
    folder, word, target, *nouns = rng.sample(NOUNS, 17)
    names, words = nouns[:4], nouns[4:]
    out = f"{target}.txt"
    prefix = "" if level == 1 else f"{folder}/"
    files = {f"{prefix}{name}.txt": _notes(rng, words) for name in names}
    holder = rng.choice(list(files))
    _plant(rng, files[holder], word)
    accepted = (holder, f"./{holder}", f"/app/{holder}", holder.removeprefix(prefix))
    if level == 1:
        instruction = say(
            rng,
            f"One of the .txt files contains the word {word}. Write its name to {out}.",
            f"Use grep -l to find the .txt file with the word {word}. "
            f"Write the file name to {out}.",
            f"Which .txt file contains {word}? Write the file name to {out}.",
        )
        return draft(
            instruction,
            files,
            f"grep -l {word} *.txt > {out}",
            answer_is(out, *accepted),
        )
    if level == 2:
        instruction = say(
            rng,
            f"One file in the directory {folder} contains the word {word}. "
            f"Write its name to {out}.",
            f"Which file in {folder} contains {word}? Write the file name to {out}.",
        )
        return draft(
            instruction,
            files,
            f"grep -l {word} {folder}/*.txt > {out}",
            answer_is(out, *accepted),
        )
    unit, option, found = rng.choice(
        [
            ("lines", "-l", len(files[holder])),
            ("words", "-w", sum(len(line.split()) for line in files[holder])),
        ]
    )
    instruction = say(
        rng,
        f"One file in the directory {folder} contains {word}. Write the number of {unit} of that "
        f"file to {out}.",
        f"Find the file in {folder} that contains {word}. How many {unit} does it have? "
        f"Write the number to {out}.",
    )
    return draft(
        instruction,
        files,
        f"wc {option} < {holder} > {out}",
        number_in_file(out, found),
        look=f"grep -l {word} {folder}/*.txt",
    )


def _move(rng: random.Random, level: int) -> Draft:
    """Rename and move files."""
    folder, word, *nouns = rng.sample(NOUNS, 16)
    names, words = nouns[:4], nouns[4:]
    first, second = f"{names[0]}.txt", f"{names[1]}.txt"
    files = {first: _notes(rng, words)}
    if level == 1:
        instruction = say(
            rng,
            f"Rename {first} to {second}.",
            f"Use mv to rename the file {first} to {second}.",
            f"Change the name of {first} to {second}.",
        )
        check = files_state({second: text_of(files[first])}, [first])
        return draft(instruction, files, f"mv {first} {second}", check)
    if level == 2:
        if rng.random() < 0.5:
            instruction = say(
                rng,
                f"Make a directory {folder} and move {first} into it under the name {second}.",
                f"Move {first} into a new directory {folder} and call it {second} there.",
            )
            command = f"mkdir {folder} && mv {first} {folder}/{second}"
            check = files_state({f"{folder}/{second}": text_of(files[first])}, [first])
            return draft(instruction, files, command, check)
        files |= {second: _notes(rng, words), f"{names[2]}.txt": _notes(rng, words)}
        instruction = say(
            rng,
            f"Make a directory {folder} and move {first} and {second} into it.",
            f"Move the files {first} and {second} into a new directory {folder}.",
        )
        command = f"mkdir {folder} && mv {first} {second} {folder}"
        moved = [first, second]
    elif rng.random() < 0.5:
        kind = rng.choice(["log", "csv", "md"])
        files |= {f"{names[i]}.{kind}": _notes(rng, words) for i in (2, 3)}
        instruction = say(
            rng,
            f"Make a directory {folder} and move all .{kind} files into it.",
            f"Move every .{kind} file into a new directory {folder}. Leave the other files.",
        )
        command = f"mkdir {folder} && mv *.{kind} {folder}"
        moved = [path for path in files if path.endswith(kind)]
    else:
        files |= {f"{name}.txt": _notes(rng, words) for name in names[1:]}
        target = rng.choice(list(files))
        _plant(rng, files[target], word)
        instruction = say(
            rng,
            f"Make a directory {folder} and move the .txt file that contains {word} into it.",
            f"Find the .txt file with the word {word} and move it into a new directory {folder}.",
        )
        return draft(
            instruction,
            files,
            f"mkdir {folder} && mv {target} {folder}",
            _moved(files, [target], folder),
            look=f"grep -l {word} *.txt",
        )
    return draft(instruction, files, command, _moved(files, moved, folder))


def _moved(files: dict[str, list[str]], moved: list[str], folder: str) -> dict[str, object]:
    """Check that these files, and only these, are now in the folder."""
    present = {
        (f"{folder}/{path}" if path in moved else path): text_of(lines)
        for path, lines in files.items()
    }
    return files_state(present, moved)


def _remove(rng: random.Random, level: int) -> Draft:
    """Delete some files and keep the others."""
    folder, word, *nouns = rng.sample(NOUNS, 18)
    names, words = nouns[:6], nouns[6:]
    if level == 1:
        files = {f"{name}.txt": _notes(rng, words) for name in names[:4]}
        gone = rng.sample(list(files), 2)
        instruction = say(
            rng,
            f"Delete the files {gone[0]} and {gone[1]}.",
            f"Use rm to delete {gone[0]} and {gone[1]}. Keep the other files.",
            f"Remove {gone[0]} and {gone[1]}.",
        )
        command, look = f"rm {gone[0]} {gone[1]}", ""
    elif level == 2:
        kind = rng.choice(["tmp", "bak", "old", "log", "csv", "md"])
        prefix = f"{folder}/"
        files = {f"{prefix}{name}.txt": _notes(rng, words) for name in names[:2]}
        gone = [f"{prefix}{name}.{kind}" for name in names[2:5]]
        files |= {path: _notes(rng, words) for path in gone}
        instruction = say(
            rng,
            f"Delete all .{kind} files in the directory {folder}. Keep the .txt files.",
            f"Remove every file in {folder} whose name ends in .{kind} and nothing else.",
        )
        command, look = f"rm {prefix}*.{kind}", ""
    else:
        files = {f"{folder}/{name}.txt": _notes(rng, words) for name in names[:4]}
        gone = [rng.choice(list(files))]
        _plant(rng, files[gone[0]], word)
        instruction = say(
            rng,
            f"One file in the directory {folder} contains {word}. Delete only that file.",
            f"Find the file in {folder} with the word {word} and remove it. Keep the others.",
        )
        command, look = f"rm {gone[0]}", f"grep -l {word} {folder}/*.txt"
    kept = {path: text_of(lines) for path, lines in files.items() if path not in gone}
    return draft(instruction, files, command, files_state(kept, gone), look=look)


def _setting(rng: random.Random, level: int) -> Draft:
    """Change a value in a settings file."""
    file = f"{rng.choice(NOUNS)}.{rng.choice(['ini', 'conf'])}"
    keys = rng.sample(_KEYS, 4)
    values = dict(zip(keys, rng.sample(range(10, 9999), 4), strict=True))
    key, source = rng.sample(keys, 2)
    new = rng.randint(10, 9999)
    while new in values.values():
        new += 1
    old = values[key]
    lines = [f"{each}={value}" for each, value in values.items()]
    look = ""
    if level == 1:
        instruction = say(
            rng,
            f"In {file}, change the line {key}={old} to {key}={new}.",
            f"Use sed -i to change {key}={old} to {key}={new} in {file}.",
            f"Replace {key}={old} by {key}={new} in {file}.",
        )
        command = f"sed -i 's/{key}={old}/{key}={new}/' {file}"
    elif level == 2:
        instruction = say(
            rng,
            f"In {file}, set {key} to {new}. Leave the rest as it is.",
            f"Change the value of {key} in {file} to {new}.",
        )
        command = f"sed -i 's/{key}=.*/{key}={new}/' {file}"
    else:
        new = values[source]
        instruction = say(
            rng,
            f"In {file}, give {key} the same value as {source}.",
            f"Look up the value of {source} in {file} and set {key} to that value.",
        )
        command = f"sed -i 's/{key}=.*/{key}={new}/' {file}"
        look = f"cat {file}"
    wanted = text_of([f"{each}={new if each == key else values[each]}" for each in keys])
    return Draft(
        instruction,
        {file: text_of(lines)},
        (Shell(look), Shell(command)) if look else (Shell(command),),
        (files_state({file: wanted}),),
    )


def _count(rng: random.Random, level: int) -> Draft:
    """Count files."""
    folder, word, target, *nouns = rng.sample(NOUNS, 29)
    names, words = nouns[:16], nouns[16:]
    count = rng.randint(3, 8)
    out = f"{target}.txt"
    files = {f"{folder}/{name}.txt": _notes(rng, words, 1, 2) for name in names[:count]}
    if level == 1:
        instruction = say(
            rng,
            f"Use ls and wc -l to count the files in the directory {folder}. "
            f"Write the number to {out}.",
            f"Count the files in the directory {folder} (ls, then wc -l) and write the number "
            f"to {out}.",
        )
        command, found = f"ls {folder} | wc -l > {out}", count
    elif level == 2:
        kind = rng.choice(["csv", "log", "md"])
        more = rng.randint(3, 7)
        files |= {
            f"{folder}/{name}.{kind}": _notes(rng, words, 1, 2) for name in names[8 : 8 + more]
        }
        kind, found = rng.choice([(kind, more), ("txt", count)])
        instruction = say(
            rng,
            f"Count the .{kind} files in the directory {folder} and write the number to {out}.",
            f"How many .{kind} files are in {folder}? Write the number to {out}.",
        )
        command = f"ls {folder}/*.{kind} | wc -l > {out}"
    else:
        found = rng.randint(2, count - 1)
        for path in rng.sample(list(files), found):
            _plant(rng, files[path], word)
        instruction = say(
            rng,
            f"Count the files in the directory {folder} that contain {word} and write the number "
            f"to {out}.",
            f"How many files in {folder} contain the word {word}? Write the number to {out}.",
        )
        command = f"grep -l {word} {folder}/*.txt | wc -l > {out}"
    return draft(instruction, files, command, number_in_file(out, found))


FAMILIES = (
    Family("find_file", "files", _find),
    Family("move_files", "files", _move),
    Family("remove_files", "files", _remove),
    Family("set_value", "files", _setting),
    Family("count_files", "files", _count, test_only=True),
)
