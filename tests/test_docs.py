"""The generated pages are what the code says today."""

import re
import sys
from pathlib import Path

import pytest

from constructions import CATALOGUE
from figures import NAMES
from iha_theory.verification import verify

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import generate  # noqa: E402  # pyright: ignore[reportMissingImports]

ROWS = list(verify(CATALOGUE))
PAGES = generate.pages(ROWS)
WRITTEN = [path for place in ("*.md", "docs/**/*.md", "figures/*.md", "proofs/*.md") for path in sorted(ROOT.glob(place))]
LINK = re.compile(r"(?<!`)\]\(([^)\s]+)\)")


def broken_links(path, text):
    """The links of a page to a file that is not there, or to a heading that its page does not have."""
    broken = []
    for link in LINK.findall(text):
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if "://" in link:
            continue
        headings = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE) if anchor and target.is_file() else []
        if not target.exists() or (anchor and anchor not in headings):
            broken.append(link)
    return broken


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


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(path):
    assert broken_links(path, path.read_text()) == []


def test_a_broken_link_would_be_seen():
    page = ROOT / "docs" / "results.md"
    text = "[a](errata.md#thm3-k4) [b](errata.md#thm3-k5) [c](nowhere.md) [d](#nothing) [e](https://example.org/#x)"
    assert broken_links(page, text) == ["errata.md#thm3-k5", "nowhere.md", "#nothing"]


def test_the_page_of_the_figures_shows_every_committed_one_with_a_sentence():
    page = (ROOT / "figures" / "README.md").read_text()
    shown = re.findall(r"^## (\w+)\n\n([^\n]+\.)\n\n!\[.+\]\((\w+)\.svg\)$", page, re.MULTILINE)
    assert [(name, file) for name, _, file in shown] == [(name, name) for name in NAMES]
    assert {f"{name}.svg" for name in NAMES} == {path.name for path in (ROOT / "figures").glob("*.svg")}


def test_a_figure_that_says_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(generate, "NAMES", ("__init__", "nothing"))
    monkeypatch.setattr(generate.ast, "get_docstring", lambda _: None)
    with pytest.raises(ValueError, match=r"figures/__init__.py: wanted a docstring"):
        generate.figures()


@pytest.mark.parametrize("name", ["k4", "n4"])
def test_a_worked_example_shows_its_picture(name):
    page = (ROOT / "docs" / "examples" / f"{name}.md").read_text()
    assert page.count("](../../figures/worked_examples.svg)") == 1
