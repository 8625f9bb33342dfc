"""Lets the mutation tool change the sources that pyproject.toml names, runs every change, lists what no test noticed.

Run by ``make mutants``. The tool makes the mutants and records which tests call which function. It forks its workers after
the packages are imported, so what a module computes meanwhile (the tables of claims, and the functions inside them) would
be as it was before the change; tests/mutant_runs.py runs the mutants instead, those functions' in processes that import the
packages anew, and tests/mutant_map.py knows which tests bear on them. Changes of nothing but prose are not run.

What survives ought to be equivalent. tests/equivalent_mutants.txt says why: a reason on lines that begin with #, then every
change that it holds for, as this command prints them. The exit code is 1 if anything else survived.

Results are kept in mutants/, so that a run may be broken off and taken up again; ``--made`` takes mutants and records as
they are, and names with * after it choose mutants.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from tests.mutant_children import KILLS
from tests.mutant_map import function_of
from tests.mutant_runs import run_mutants

TOOL = Path(sys.executable).with_name("mutmut")
FOLDER = Path("mutants")
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
#: The tool makes all mutants and records all tests, whichever it is then asked to run.
ANY = "iha_theory.attention.*__mutmut_1"


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


def equivalent(text: str) -> dict[str, str]:
    """A survivor as it is printed (function, then what changes) to the reason why it is equivalent."""
    found: dict[str, str] = {}
    reason = ""
    for block in text.split("\n\n"):
        lines = block.strip("\n").splitlines()
        if lines and all(line.startswith("#") for line in lines):
            reason = " ".join(line.removeprefix("#").strip() for line in lines)
        elif lines:
            found["\n".join(lines)] = reason
    return found


def made() -> Iterator[tuple[str, str, str]]:
    """(mutant, its function before, and after) for all mutants."""
    for meta in sorted(FOLDER.rglob("*.py.meta")):
        names = json.loads(meta.read_text())["exit_code_by_key"]
        module = meta.with_suffix("")
        spans = json.loads(module.with_suffix(".py.spans").read_text())["spans"] if names else {}
        lines = module.read_text().splitlines()
        for name in names:
            yield name, *sources(name, spans, lines)


def main() -> int:
    """Have the mutants made unless told not to, run them, print what survived and is not known to be equivalent."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=main.__doc__)
    parser.add_argument("--made", action="store_true", help="take the mutants and the recorded tests as they are")
    parser.add_argument("patterns", nargs="*", default=["*"], metavar="NAME", help="names of mutants, * stands for any part")
    options = parser.parse_args()
    if not options.made:
        subprocess.run([TOOL, "run", ANY], check=True)
    wanted = [found for found in made() if any(fnmatch(found[0], pattern) for pattern in options.patterns)]
    if not wanted:
        parser.error(f"no mutant in {FOLDER}/ is named {' or '.join(options.patterns)}; leave --made out to have them made")
    wording = {name for name, before, after in wanted if is_wording(before, after)}
    results = run_mutants(FOLDER, [name for name, _, _ in wanted if name not in wording])
    known = equivalent(EQUIVALENT.read_text())
    count = Counter({"wording": len(wording)})
    for name, before, after in wanted:
        if name in wording:
            continue
        survivor = f"{function_of(name)}\n{change(before, after)}"
        result = results[name] if results[name] in KILLS else "equivalent" if survivor in known else "not explained"
        count[result] += 1
        if result == "not explained":
            print(f"{survivor}\n")
    print(", ".join(f"{result}: {number}" for result, number in sorted(count.items())), f"of {len(wanted)}")
    return int(count["not explained"] > 0)


if __name__ == "__main__":
    sys.exit(main())
