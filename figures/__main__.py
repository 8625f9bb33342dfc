"""``python -m figures [NAME ...] --out DIR --format svg|png|pdf``: draw the figures, each file whole or not at all.

Exit codes: 0 drawn; 1 a claim that a figure rests on does not stand; 2 bad input; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from figures import FORMATS, NAMES, Disappointed, module_of, rendered


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {' '.join(message.split())}", file=sys.stderr)
        sys.exit(2)


def parser() -> argparse.ArgumentParser:
    """The options."""
    top = _Parser(prog="python -m figures", description="Draw the figures from the evidence and the accounts.",
                  epilog=f"Figures: {', '.join(NAMES)}. Exit codes: 0 drawn, 1 a claim disappoints, 2 bad input, "
                         "130 interrupted.")
    top.add_argument("names", nargs="*", metavar="NAME", help="which figures (default: all)")
    top.add_argument("--out", metavar="DIR", default=".", help="the folder to write to (default: this one)")
    top.add_argument("--format", choices=FORMATS, default="svg", help="default: svg")
    return top


def draw(names: Sequence[str], folder: Path, form: str) -> None:
    """Draw figures into a folder and print each path.

    Raises:
        ValueError: an unknown figure, no matplotlib, or a folder that cannot be written to.
    """
    wanted = names or NAMES
    for name in wanted:
        if name not in NAMES:
            module_of(name)
    if find_spec("matplotlib") is None:
        raise ValueError("matplotlib is not installed; run make figures, or pip install 'iha-theory[figures]'")
    from iha_theory.commands import Progress
    from iha_theory.weights_file import check_writable, write_whole

    paths = {name: folder / f"{name}.{form}" for name in wanted}
    for path in paths.values():
        check_writable(path)
    with Progress() as progress:
        for number, (name, path) in enumerate(paths.items(), start=1):
            progress.now(f"figure {number} of {len(paths)}: {name}")
            write_whole(path, rendered(name, form))
            print(path, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run once; the exit code is returned."""
    options = parser().parse_args(argv)
    try:
        draw(options.names, Path(options.out), options.format)
    except ValueError as error:
        return _refused(2, str(error))
    except BrokenPipeError:
        # The reader of the list (head, less) has gone; Python must not complain when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _refused(2, f"{error.filename or options.out}: {error.strerror or error}; choose another folder")
    except KeyboardInterrupt:
        return _refused(130, "interrupted; every file that is there is whole")
    except Disappointed as error:
        return _refused(1, str(error))
    return 0


def _refused(code: int, message: str) -> int:
    print(f"python -m figures: {' '.join(message.split())}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
