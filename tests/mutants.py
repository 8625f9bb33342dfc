"""Runs the mutation tool over the sources that pyproject.toml names, then a second pass over what it left; lists the rest.

Run by ``make mutants``; it takes hours on two cores. The tool forks its workers after the packages are imported: what a
module computes while it is imported (the tables of claims, and the functions inside them) is then as it was before the
change, and no test can tell. So every mutant that survived the tool, or that it found no test for, is run once more in a
process that imports the packages with the change in force; tests/mutant_runs.py does it, tests/mutant_map.py knows which
tests to run. Changes of nothing but prose are listed as wording and not run. Results are kept in mutants/, so that a run
may be broken off and taken up again; ``--second`` takes the tool's results as they are, and names with * after it choose
mutants.
"""

from __future__ import annotations

import ast
import difflib
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from tests.mutant_map import function_of
from tests.mutant_runs import KILLS, second_pass

TOOL = Path(sys.executable).with_name("mutmut")
FOLDER = Path("mutants")
SURVIVED, UNTESTED = 0, (5, 33)


def sources(name: str, spans: dict[str, list[int]], lines: list[str]) -> tuple[str, str]:
    """The function as it is and as the mutant has it, both without their names."""
    mutant = name.rpartition(".")[2]
    original = mutant.partition("__mutmut_")[0] + "__mutmut_orig"
    found = []
    for function in (original, mutant):
        first, last = spans[function]
        found.append(textwrap.dedent("\n".join(lines[first - 1 : last])).replace(function, "function"))
    return found[0], found[1]


def change(before: str, after: str) -> str:
    """The lines that a mutant changes."""
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in diff if not line.startswith(("---", "+++", "@@")))


def is_wording(before: str, after: str) -> bool:
    """Whether a change is inside of prose alone: of text with a space in it that is no formula of einsum."""
    pairs = list(zip(ast.walk(ast.parse(before)), ast.walk(ast.parse(after)), strict=False))
    texts = [(old.value, new.value) for old, new in pairs if isinstance(old, ast.Constant) and isinstance(new, ast.Constant)
             and isinstance(old.value, str) and isinstance(new.value, str) and old.value != new.value]
    for old, new in pairs:
        if isinstance(old, ast.Constant) and isinstance(new, ast.Constant):
            new.value = old.value if isinstance(old.value, str) and isinstance(new.value, str) else new.value
    same = len(pairs) > 0 and ast.dump(pairs[0][0]) == ast.dump(pairs[0][1])
    return same and bool(texts) and all(" " in old and "->" not in old for old, _ in texts)


def left_by_the_tool() -> Iterator[tuple[str, str, str]]:
    """(mutant, its function before, and after) for the mutants that survived or had no tests."""
    for meta in sorted(FOLDER.rglob("*.py.meta")):
        found = json.loads(meta.read_text())["exit_code_by_key"]
        module = meta.with_suffix("")
        if not any(code in (SURVIVED, *UNTESTED) for code in found.values()):
            continue
        spans = json.loads(module.with_suffix(".py.spans").read_text())["spans"]
        lines = module.read_text().splitlines()
        for name, code in found.items():
            if code in (SURVIVED, *UNTESTED):
                yield name, *sources(name, spans, lines)


def main() -> None:
    """Run the tool unless told not to, run the second pass, then print what survived both."""
    if "--second" not in sys.argv[1:]:
        subprocess.run([TOOL, "run"], check=True)
    wanted = [argument for argument in sys.argv[1:] if not argument.startswith("--")] or ["*"]
    left = [found for found in left_by_the_tool() if any(fnmatch(found[0], pattern) for pattern in wanted)]
    wording = {name for name, before, after in left if is_wording(before, after)}
    results = second_pass(FOLDER, [name for name, _, _ in left if name not in wording])
    count: dict[str, int] = dict.fromkeys(KILLS, 0)
    for name, before, after in left:
        result = "wording" if name in wording else results[name]
        count[result] = count.get(result, 0) + 1
        if result not in (*KILLS, "wording"):
            print(f"{name} ({result}, in {function_of(name)})\n{change(before, after)}\n")
    print(", ".join(f"{result}: {number}" for result, number in count.items()), f"of {len(left)} that the tool left")


if __name__ == "__main__":
    main()
