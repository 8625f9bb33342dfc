"""``python -m constructions``, the same as ``iha-theory``: hands a loader of the book to the command line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from iha_theory.cli import main as run

if TYPE_CHECKING:
    from iha_theory.book import Book


def load() -> Book:
    """The book; importing it takes half a second, so that only commands that need it do."""
    from constructions.catalogue import BOOK

    return BOOK


def main() -> None:
    """The console script."""
    from constructions.__main__ import load

    sys.exit(run(load))


if __name__ == "__main__":
    main()
