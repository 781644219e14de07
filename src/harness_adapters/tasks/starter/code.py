"""Small Python work: repair, rename, extend, build."""

from __future__ import annotations

import random

from harness_adapters.tasks.starter.family import (
    NOUNS,
    Draft,
    Family,
    draft,
    files_state,
    program_output,
    python_behaviour,
    say,
    sentence,
    text_of,
)
from harness_adapters.tasks.starter.functions import Function, random_functions
from harness_adapters.tasks.task import Edit, Shell, WriteFile


def _module(functions: list[Function], broken: Function | None = None) -> str:
    """Source of a module; functions are two lines apart."""
    return "\n\n\n".join("\n".join(one.source(broken=one is broken)) for one in functions) + "\n"


def _fix(rng: random.Random, level: int) -> Draft:
    """Repair a function that returns the wrong thing."""
    folder, name = rng.sample(NOUNS, 2)
    file = f"{folder}/{name}.py" if level == 3 else f"{name}.py"
    functions = random_functions(rng, level)
    target = rng.choice(functions)
    files = {file: _module(functions, target)}
    edit = Edit(file, f"return {target.bad}", f"return {target.good}")
    look: tuple[Shell, ...] = ()
    if level == 1:
        instruction = say(
            rng,
            f"In {file}, change `return {target.bad}` to `return {target.good}`.",
            f"The line `return {target.bad}` in {file} is wrong. "
            f"Replace it by `return {target.good}`.",
        )
    elif level == 2:
        instruction = say(
            rng,
            f"Fix the function {target.name} in {file}: it has `return {target.bad}` but must "
            f"return {target.meaning}.",
            f"The function {target.name} in {file} must return {target.meaning}. Its line "
            f"`return {target.bad}` is wrong, fix it.",
        )
    else:
        instruction = say(
            rng,
            f"One function in {file} does not do what its docstring says. Fix it.",
            f"Read {file}, find the function that does not match its docstring, and fix it.",
        )
        look = (Shell(f"cat {file}"),)
    calls = [call for one in functions for call in one.calls]
    return Draft(instruction, files, (*look, edit), (python_behaviour(file, calls),))


def _rename(rng: random.Random, level: int) -> Draft:
    """Rename a function."""
    first, second, third, fourth, folder, module, main = rng.sample(NOUNS, 7)
    old, new = f"get_{first}", f"load_{second}"
    number = rng.randint(2, 500)
    main_file, lib_file = f"{main}.py", f"{module}.py"
    if level == 1:
        files = {
            main_file: [f"def {old}():", f"    return {number}", "", "", f"print({old}())"],
        }
        instruction = say(
            rng,
            f"Rename the function {old} to {new} everywhere in {main_file}.",
            f"Use sed -i to rename {old} to {new} in {main_file}.",
            f"In {main_file}, change the name of the function {old} to {new}.",
        )
        command = f"sed -i 's/{old}/{new}/g' {main_file}"
        swaps = {old: new}
    elif level == 2:
        files = {
            lib_file: [f"def {old}():", f"    return {number}"],
            main_file: [f"from {module} import {old}", "", f"print({old}())"],
        }
        instruction = say(
            rng,
            f"Rename the function {old} to {new} in {lib_file} and {main_file}.",
            f"Change the name {old} to {new} everywhere in {lib_file} and {main_file}.",
        )
        command = f"sed -i 's/{old}/{new}/g' {lib_file} {main_file}"
        swaps = {old: new}
    elif rng.random() < 0.5:
        other, other_new = f"set_{third}", f"save_{fourth}"
        files = {
            main_file: [
                f"def {old}():",
                f"    return {number}",
                "",
                "",
                f"def {other}(x):",
                f"    return {old}() + x",
                "",
                "",
                f"print({other}(3))",
            ]
        }
        instruction = say(
            rng,
            f"In {main_file}, rename the function {old} to {new} and {other} to {other_new}.",
            f"Rename {old} to {new} and also {other} to {other_new} everywhere in {main_file}.",
        )
        command = f"sed -i 's/{old}/{new}/g; s/{other}/{other_new}/g' {main_file}"
        swaps = {old: new, other: other_new}
    else:
        files = {
            f"{folder}/{lib_file}": [f"def {old}():", f"    return {number}"],
            f"{folder}/{main_file}": [f"from {module} import {old}", "", f"print({old}())"],
            f"{folder}/{third}.py": [f"import {module}", "", f"print({module}.{old}() + 1)"],
        }
        instruction = say(
            rng,
            f"Rename the function {old} to {new} in all .py files of the directory {folder}.",
            f"Change the name {old} to {new} everywhere in the directory {folder}.",
        )
        command = f"sed -i 's/{old}/{new}/g' {folder}/*.py"
        swaps = {old: new}
    wanted = {}
    for path, lines in files.items():
        text = text_of(lines)
        for before, after in swaps.items():
            text = text.replace(before, after)
        wanted[path] = text
    return draft(instruction, files, command, files_state(wanted))


def _function(rng: random.Random, level: int) -> Draft:
    """Write a new function."""
    file = f"{rng.choice(NOUNS)}.py"
    kinds = {1: "number", 2: "two text", 3: "number two"}[level]
    one, existing = random_functions(rng, 2, kinds)
    heading = f"{one.name}({one.parameters})"
    if level < 3:
        instruction = say(
            rng,
            f"Create {file} with a Python function {heading} that returns {one.meaning}.",
            f"Write a Python file {file} with the function {heading}. "
            f"It must return {one.meaning}.",
        )
        content = text_of(one.source(documented=False))
        return Draft(
            instruction,
            {},
            (WriteFile(file, content),),
            (python_behaviour(file, one.calls),),
        )
    instruction = say(
        rng,
        f"Add a function {heading} to {file} that returns {one.meaning}. "
        f"Keep the function {existing.name}.",
        f"{file} has the function {existing.name}. Add a second function {heading} that "
        f"returns {one.meaning}.",
    )
    command = f"echo 'def {heading}: return {one.good}' >> {file}"
    return Draft(
        instruction,
        {file: text_of(existing.source(documented=False))},
        (Shell(command),),
        (python_behaviour(file, [*one.calls, *existing.calls]),),
    )


def _script(rng: random.Random, level: int) -> Draft:
    """Write a Python script that prints something."""
    name, other = rng.sample(NOUNS, 2)
    file = f"{name}.py"
    if level == 1:
        text = sentence(rng, 2)
        instruction = say(
            rng,
            f"Create a Python script {file} that prints: {text}",
            f"Write a Python file {file} that prints the text {text}",
        )
        runs: list[tuple[list[str], str]]
        code, runs = f"print('{text}')\n", [([], f"{text}\n")]
    elif level == 2:
        start = rng.randint(1, 30)
        stop = start + rng.randint(4, 30)
        factor = rng.randint(2, 9)
        if rng.random() < 0.5:
            instruction = say(
                rng,
                f"Create a Python script {file} that prints the numbers from {start} to {stop}, "
                "one per line.",
                f"Write {file}, a Python script that prints each number from {start} to {stop} "
                "on its own line.",
            )
            code = f"for i in range({start}, {stop + 1}):\n    print(i)\n"
            values = [str(i) for i in range(start, stop + 1)]
        else:
            instruction = say(
                rng,
                f"Create a Python script {file} that prints the numbers from {start} to {stop}, "
                f"each times {factor}, one per line.",
                f"Write {file}, a Python script that prints i times {factor} for each i from "
                f"{start} to {stop}, one per line.",
            )
            code = f"for i in range({start}, {stop + 1}):\n    print(i * {factor})\n"
            values = [str(i * factor) for i in range(start, stop + 1)]
        runs = [([], text_of(values))]
    elif rng.random() < 0.5:
        constant = rng.randint(2, 90)
        words, sign = rng.choice([("times", "*"), ("plus", "+"), ("minus", "-")])
        instruction = say(
            rng,
            f"Create a Python script {file} that takes a number as its argument and prints it "
            f"{words} {constant}.",
            f"Write {file}, a Python script that prints its first argument, a number, "
            f"{words} {constant}.",
        )
        code = f"import sys\nprint(int(sys.argv[1]) {sign} {constant})\n"
        act = {"*": int.__mul__, "+": int.__add__, "-": int.__sub__}[sign]
        runs = [([str(x)], f"{act(x, constant)}\n") for x in (0, 7, 12, 100)]
    else:
        data = f"{other}.txt"
        lines = [sentence(rng, rng.randint(1, 4)) for _ in range(rng.randint(4, 9))]
        what, call, printed = rng.choice(
            [
                ("in upper case", ".upper()", text_of(lines).upper()),
                ("with each letter e changed to x", ".replace('e', 'x')", None),
                ("in title case", ".title()", text_of(lines).title()),
            ]
        )
        if printed is None:
            printed = text_of(lines).replace("e", "x")
        instruction = say(
            rng,
            f"Create a Python script {file} that reads {data} and prints its text {what}.",
            f"Write {file}, a Python script that prints the text of {data} {what}.",
        )
        code = f"print(open('{data}').read(){call})\n"
        return Draft(
            instruction,
            {data: text_of(lines)},
            (WriteFile(file, code),),
            (program_output(file, [([], printed)]),),
        )
    return Draft(instruction, {}, (WriteFile(file, code),), (program_output(file, runs),))


FAMILIES = (
    Family("fix_bug", "code", _fix),
    Family("rename_name", "code", _rename),
    Family("add_function", "code", _function),
    Family("write_script", "code", _script),
)
