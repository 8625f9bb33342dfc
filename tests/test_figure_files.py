"""What is committed is what is drawn: the same bytes, whole pictures, looks that grey keeps apart."""

import io
from typing import Any

import matplotlib
import pytest

from figures import NAMES, evidence, rendered, style
from tests.drawn_figures import FOLDER, committed, data_of, module

PARTS = {"__init__", "__main__", "evidence", "style"}


@pytest.mark.parametrize("name", NAMES)
def test_no_committed_figure_is_stale(name):
    assert rendered(name) == committed(name), "stale: run make figures, look at it and commit it"


def test_a_stale_figure_would_be_seen(monkeypatch):
    drawn = module("parameters_against_k")
    account = drawn.filter_mha
    monkeypatch.setattr(drawn, "filter_mha", lambda *sizes: 2 * account(*sizes))
    assert rendered("parameters_against_k") != committed("parameters_against_k")


def test_every_figure_has_one_module_and_one_svg_of_its_name():
    assert {path.stem for path in FOLDER.glob("*.py")} - PARTS == set(NAMES)
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_svg_holds_paths_and_text_without_date_or_raster(name):
    text = committed(name).decode()
    assert text.startswith("<?xml")
    assert "<image" not in text
    assert "<pattern" not in text, "a fill pattern is not drawn by every reader of SVG"
    assert "dc:date" not in text


def test_the_users_own_settings_change_nothing():
    own: dict[Any, Any] = {"font.size": 30, "svg.hashsalt": None, "axes.titleweight": "bold", "xtick.major.size": 9}
    with matplotlib.rc_context(own):
        assert rendered("crossover_map") == committed("crossover_map")


@pytest.mark.parametrize(("form", "begins"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_other_formats_are_the_same_each_time(form, begins):
    first = rendered("crossover_map", form)
    assert first.startswith(begins)
    assert b"CreationDate" not in first
    assert rendered("crossover_map", form) == first


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_has_a_title_axes_with_names_and_nothing_beyond_its_edge(name):
    with style.applied():
        figure = module(name).draw(data_of(name))
        style.with_source(figure, evidence.standing(*module(name).CLAIMS))
        figure.savefig(io.BytesIO(), format="png")
        assert len(figure.get_suptitle().split()) > 6
        width, height = figure.get_size_inches()
        inside = figure.get_tightbbox()
        assert inside is not None
        assert 0 <= inside.x0 < inside.x1 <= width
        assert 0 <= inside.y0 < inside.y1 <= height
        for axes in figure.axes:
            assert axes.get_xlabel() or axes.get_title(loc="left")
            assert all(text.get_fontsize() >= 6.5 for text in axes.texts)
        assert any(axes.get_xlabel() for axes in figure.axes)
        assert any(axes.get_ylabel() for axes in figure.axes)


def test_a_title_that_is_too_long_would_be_seen():
    with style.applied():
        figure = style.canvas("short")
        figure.subplots()
        figure.suptitle("x" * 200, x=0.012, ha="left")
        figure.savefig(io.BytesIO(), format="png")
        inside = figure.get_tightbbox()
        assert inside is not None
        assert inside.x1 > figure.get_size_inches()[0]


def test_the_looks_differ_without_colour():
    compared = [style.LOOKS[look] for look in ("first", "second", "third", "fourth", "fifth", "printed")]
    assert len({str(look.line) for look in compared}) == len(compared)
    assert len({look.marker for look in compared}) == len(compared)
    assert len({str(style.LOOKS[look].line) for look in ("mha", "iha", "tiled", "printed")}) == 4


def test_a_title_is_broken_between_words_and_markup_is_not_counted():
    assert style.wrapped("one two three", 7) == "one two\nthree"
    assert style.wrapped(f"{style.power('k', 0.5)} two", 9).count("\n") == 0
    assert style.wrapped("a = b", 1) == "a\u00a0=\u00a0b"
