"""Changing text files: case, words, lines, joining."""

from __future__ import annotations

import random

from harness_adapters.tasks.starter.family import (
    NOUNS,
    Draft,
    Family,
    draft,
    files_state,
    lines_equal,
    say,
    sentence,
    text_of,
)


def _lines(rng: random.Random, low: int = 4, high: int = 8, words: int = 3) -> list[str]:
    return [sentence(rng, words) for _ in range(rng.randint(low, high))]


def _lines_with(rng: random.Random, word: str, times: int, others: list[str]) -> list[str]:
    """Lines of `others`, of which `times` also hold `word` once."""
    lines = [" ".join(rng.choice(others) for _ in range(3)) for _ in range(times + 4)]
    for index in rng.sample(range(len(lines)), times):
        first, *rest = lines[index].split()
        lines[index] = " ".join([first, word, *rest[1:]])
    return lines


def _upper(rng: random.Random, level: int) -> Draft:
    """Upper case and single characters."""
    name, target, *others = rng.sample(NOUNS, 10)
    file, out = f"{name}.txt", f"{target}.txt"
    if level == 1:
        lines = _lines(rng)
        instruction = say(
            rng,
            f"Convert the text of {file} to upper case and write it to {out}.",
            f"Use tr a-z A-Z to write {file} in upper case to {out}.",
            f"Write {file} in capital letters to {out}.",
        )
        return draft(
            instruction,
            {file: lines},
            f"tr a-z A-Z < {file} > {out}",
            lines_equal(out, [line.upper() for line in lines]),
        )
    if level == 2:
        names = {",": "comma", ":": "colon", "/": "slash", "+": "plus sign", "=": "equal sign"}
        old, new = rng.sample(list(names), 2)
        lines = [line.replace(" ", old) for line in _lines(rng)]
        instruction = say(
            rng,
            f"Replace every {old} in {file} by {new} and write the result to {out}.",
            f"Write {file} to {out} with every {names[old]} ({old}) changed to a "
            f"{names[new]} ({new}).",
        )
        return draft(
            instruction,
            {file: lines},
            f"tr {old} {new} < {file} > {out}",
            lines_equal(out, [line.replace(old, new) for line in lines]),
        )
    word = others.pop()
    lines = _lines_with(rng, word, 3, others)
    instruction = say(
        rng,
        f"Write the lines of {file} that contain {word} in upper case to {out}.",
        f"Take only the lines with {word} from {file}, change them to upper case, "
        f"and write them to {out}.",
    )
    return draft(
        instruction,
        {file: lines},
        f"grep {word} {file} | tr a-z A-Z > {out}",
        lines_equal(out, [line.upper() for line in lines if word in line]),
    )


def _lower(rng: random.Random, level: int) -> Draft:
    """Lower case, and characters taken out."""
    name, target = rng.sample(NOUNS, 2)
    file, out = f"{name}.txt", f"{target}.txt"
    lines = [line.upper() for line in _lines(rng)]
    if level == 1:
        instruction = say(
            rng,
            f"Use tr A-Z a-z to write {file} in lower case to {out}.",
            f"Convert the text of {file} to lower case with tr A-Z a-z and write it to {out}.",
        )
        command, wanted = f"tr A-Z a-z < {file} > {out}", [line.lower() for line in lines]
    elif level == 2:
        instruction = say(
            rng,
            f"Convert the text of {file} to lower case and write it to {out}.",
            f"Write {file} in small letters to {out}.",
        )
        command, wanted = f"tr A-Z a-z < {file} > {out}", [line.lower() for line in lines]
    else:
        instruction = say(
            rng,
            f"Convert {file} to lower case, sort the lines, and write them to {out}.",
            f"Write the lines of {file} in lower case and sorted to {out}.",
        )
        command = f"tr A-Z a-z < {file} | sort > {out}"
        wanted = sorted(line.lower() for line in lines)
    return draft(instruction, {file: lines}, command, lines_equal(out, wanted))


def _replace(rng: random.Random, level: int) -> Draft:
    """Replace a word."""
    name, target, old, new, *others = rng.sample(NOUNS, 12)
    file, out = f"{name}.txt", f"{target}.txt"
    lines = _lines_with(rng, old, 3, others)
    if level == 1:
        instruction = say(
            rng,
            f"Replace the word {old} by {new} everywhere in {file}.",
            f"Use sed -i to change every {old} to {new} in {file}.",
            f"In {file}, change every {old} to {new}.",
        )
        return draft(
            instruction,
            {file: lines},
            f"sed -i 's/{old}/{new}/g' {file}",
            lines_equal(file, [line.replace(old, new) for line in lines]),
        )
    if level == 2:
        if rng.random() < 0.5:
            number = rng.choice([i for i, line in enumerate(lines, 1) if old in line])
            instruction = say(
                rng,
                f"Replace {old} by {new} only in line {number} of {file}.",
                f"In line {number} of {file}, change {old} to {new}. Leave the other lines.",
            )
            wanted = [
                line.replace(old, new) if i == number else line for i, line in enumerate(lines, 1)
            ]
            command = f"sed -i '{number}s/{old}/{new}/' {file}"
            return draft(instruction, {file: lines}, command, lines_equal(file, wanted))
        instruction = say(
            rng,
            f"Write {file} with {old} replaced by {new} to {out}. Do not change {file}.",
            f"Copy {file} to {out} with every {old} changed to {new}. Leave {file} as it is.",
        )
        return draft(
            instruction,
            {file: lines},
            f"sed 's/{old}/{new}/g' {file} > {out}",
            lines_equal(out, [line.replace(old, new) for line in lines]),
            lines_equal(file, lines),
        )
    files = {f"{name}/{each}.txt": _lines_with(rng, old, 2, others) for each in others[:3]}
    instruction = say(
        rng,
        f"Replace {old} by {new} in all .txt files of the directory {name}.",
        f"Change every {old} to {new} in all files of the directory {name}.",
    )
    wanted_files = {
        path: text_of([line.replace(old, new) for line in lines]) for path, lines in files.items()
    }
    return draft(
        instruction, files, f"sed -i 's/{old}/{new}/g' {name}/*.txt", files_state(wanted_files)
    )


def _delete(rng: random.Random, level: int) -> Draft:
    """Delete lines by word or number."""
    name, target, word, *others = rng.sample(NOUNS, 11)
    file, out = f"{name}.txt", f"{target}.txt"
    lines = _lines_with(rng, word, 2, others)
    kept = [line for line in lines if word not in line]
    if level == 1:
        instruction = say(
            rng,
            f"Use sed -i '/{word}/d' to delete all lines that contain {word} from {file}.",
            f"Delete every line with {word} from {file} with sed -i '/{word}/d'.",
        )
        return draft(
            instruction, {file: lines}, f"sed -i '/{word}/d' {file}", lines_equal(file, kept)
        )
    if level == 2:
        if rng.random() < 0.5:
            number = rng.randint(2, 5)
            instruction = say(
                rng,
                f"Delete line {number} of {file}.",
                f"Take line {number} out of {file} and keep the other lines.",
            )
            command = f"sed -i {number}d {file}"
            return draft(
                instruction,
                {file: lines},
                command,
                lines_equal(file, lines[: number - 1] + lines[number:]),
            )
        instruction = say(
            rng,
            f"Write all lines of {file} that do not contain {word} to {out}.",
            f"Write {file} without the lines with {word} to {out}.",
        )
        command = f"grep -v {word} {file} > {out}"
        return draft(instruction, {file: lines}, command, lines_equal(out, kept))
    files = {f"{name}/{each}.txt": _lines_with(rng, word, 1, others) for each in others[:3]}
    instruction = say(
        rng,
        f"Delete all lines that contain {word} from all files of the directory {name}.",
        f"In all .txt files of the directory {name}, delete the lines with {word}.",
    )
    wanted = {
        path: text_of([line for line in lines if word not in line]) for path, lines in files.items()
    }
    return draft(instruction, files, f"sed -i '/{word}/d' {name}/*.txt", files_state(wanted))


def _append(rng: random.Random, level: int) -> Draft:
    """Add lines to files."""
    name, other = rng.sample(NOUNS, 2)
    file, second = f"{name}.txt", f"{other}.txt"
    lines, more = _lines(rng), _lines(rng)
    text = sentence(rng, 2 if level < 3 else 1)
    if level == 1:
        instruction = say(
            rng,
            f"Use echo and >> to add the line {text} at the end of {file}.",
            f"Append this line to {file} with echo and >>: {text}",
        )
        command = f"echo {text} >> {file}"
        return draft(instruction, {file: lines}, command, lines_equal(file, [*lines, text]))
    if level == 2:
        if rng.random() < 0.5:
            instruction = say(
                rng,
                f"Add the line {text} at the end of {file}.",
                f"Append this line to {file}: {text}",
            )
            command, wanted = f"echo {text} >> {file}", [*lines, text]
        else:
            instruction = say(
                rng,
                f"Add the line {text} at the top of {file}.",
                f"Put this line before the first line of {file}: {text}",
            )
            command, wanted = f"sed -i '1i {text}' {file}", [text, *lines]
        return draft(instruction, {file: lines}, command, lines_equal(file, wanted))
    instruction = say(
        rng,
        f"Add the line {text} at the end of {file} and of {second}.",
        f"Append a line with the word {text} to both {file} and {second}.",
    )
    return draft(
        instruction,
        {file: lines, second: more},
        f"echo {text} >> {file} && echo {text} >> {second}",
        lines_equal(file, [*lines, text]),
        lines_equal(second, [*more, text]),
    )


def _join(rng: random.Random, level: int) -> Draft:
    """Join files."""
    target, folder, *names = rng.sample(NOUNS, 5)
    out = f"{target}.txt"
    if level < 3:
        files = {f"{name}.txt": _lines(rng, 2, 5) for name in names[: level + 1]}
        *most, last = files
        listed = f"{', '.join(most)} and {last}"
        instruction = (
            say(
                rng,
                f"Join {listed} in this order into {out}.",
                f"Use cat to write {listed} one after the other to {out}.",
                f"Write the lines of {most[0]}, then the lines of {last}, to {out}.",
            )
            if level == 1
            else say(
                rng,
                f"Join {listed} in this order into {out}.",
                f"Write the content of {listed}, one after the other, to {out}.",
            )
        )
        return draft(
            instruction,
            files,
            f"cat {' '.join(files)} > {out}",
            lines_equal(out, [line for lines in files.values() for line in lines]),
        )
    files = {f"{folder}/{name}.txt": _lines(rng, 2, 5) for name in sorted(names)}
    if rng.random() < 0.5:
        instruction = say(
            rng,
            f"Join all files of the directory {folder}, sort the lines, and write them to {out}.",
            f"Write the lines of all .txt files in {folder} together, sorted, to {out}.",
        )
        command = f"cat {folder}/*.txt | sort > {out}"
        wanted = sorted(line for lines in files.values() for line in lines)
        return draft(instruction, files, command, lines_equal(out, wanted))
    instruction = say(
        rng,
        f"Write the first line of each file in the directory {folder} to {out}, "
        "files in alphabetical order.",
        f"Take the first line of every .txt file in {folder}, in order of the file names, "
        f"and write them to {out}.",
    )
    command = f"head -qn 1 {folder}/*.txt > {out}"
    return draft(instruction, files, command, lines_equal(out, [x[0] for x in files.values()]))


FAMILIES = (
    Family("upper_case", "edits", _upper),
    Family("replace_word", "edits", _replace),
    Family("join_files", "edits", _join),
    Family("lower_case", "edits", _lower, test_only=True),
    Family("delete_lines", "edits", _delete, test_only=True),
    Family("append_line", "edits", _append, test_only=True),
)
