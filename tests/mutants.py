"""Runs the mutation tool over the sources that pyproject.toml names and prints every survivor with its change.

Run by ``make mutants``; it takes an hour on two cores. The tool changes function bodies and forks its workers after the
packages are imported, so that what a module computes while it is imported (the tables of claims) is not reached by it:
that is what tests/test_teeth.py is for.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(sys.executable).with_name("mutmut")


def survivors() -> list[str]:
    """The names of the mutants that no test killed."""
    listed = subprocess.run([TOOL, "results"], capture_output=True, text=True, check=True).stdout
    return [line.split(":")[0].strip() for line in listed.splitlines() if line.strip().endswith(": survived")]


def change(name: str) -> str:
    """The lines that a mutant changes."""
    shown = subprocess.run([TOOL, "show", name], capture_output=True, text=True, check=True).stdout
    return "\n".join(line for line in shown.splitlines()
                     if line.startswith(("-", "+")) and not line.startswith(("---", "+++")))


def main() -> None:
    """Run the tool, then print what survived."""
    subprocess.run([TOOL, "run"], check=True)
    names = survivors()
    for name in names:
        print(f"{name}\n{change(name)}\n")
    print(f"{len(names)} survivors")


if __name__ == "__main__":
    main()
