"""The generated pages are what the code says today."""

import sys
from pathlib import Path

import pytest

from constructions import CATALOGUE
from iha_theory.verification import verify

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import generate  # noqa: E402  # pyright: ignore[reportMissingImports]

PAGES = generate.pages()
ROWS = list(verify(CATALOGUE))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_generated_page_is_stale(path):
    assert path.read_text() == PAGES[path], "stale: run make docs"


def test_a_stale_table_would_be_seen():
    text = generate.ROOT.joinpath("README.md").read_text()
    edited = text.replace(f"{generate.BEGIN}\n", f"{generate.BEGIN}\n| a line | that | no | run | printed | 1 |\n")
    assert edited != text
    assert generate.readme(edited, ROWS) == text


def test_a_readme_without_marks_is_refused():
    with pytest.raises(ValueError, match="put them back"):
        generate.readme("no marks here", [])
