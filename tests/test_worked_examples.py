"""The pages of the worked examples, made while the test runs, are the committed ones to the letter."""

import sys
from pathlib import Path

import pytest

from constructions import BOOK
from iha_theory.display import as_markdown

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import generate  # noqa: E402  # pyright: ignore[reportMissingImports]


@pytest.mark.parametrize("name", BOOK.examples)
def test_an_example_is_its_page(name):
    page = (ROOT / "docs" / "examples" / f"{name}.md").read_text()
    assert as_markdown(BOOK.examples[name](), generate.PICTURE.format(place=generate.PLACES[name]).rstrip()) == page


@pytest.mark.parametrize("name", BOOK.examples)
def test_an_example_knows_its_name(name):
    assert BOOK.examples[name]().name == name
