"""The figures: drawn anew they are the committed ones, their numbers are those worked by hand, bad input is refused."""

import ast
import io
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib import import_module
from math import e, log, sqrt, tanh
from pathlib import Path
from typing import Any

import matplotlib
import pytest

import figures
from figures import NAMES, Disappointed, evidence, rendered, style
from figures.__main__ import main
from iha_theory.claims import Verdict

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "figures"
PARTS = {"__init__", "__main__", "evidence", "style"}


def module(name):
    return import_module(f"figures.{name}")


@cache
def data_of(name):
    """The data of a figure, computed once for all tests."""
    return module(name).data()


def committed(name):
    return (FOLDER / f"{name}.svg").read_bytes()


# --- What is committed is what is drawn ---------------------------------------------------------------------------


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


# --- Every number from the accounts, against one worked by hand ---------------------------------------------------


def test_parameters_against_k():
    drawn = module("parameters_against_k")
    data = data_of("parameters_against_k")
    n, d = data.n, data.d
    assert data.mha.k[0] == 16
    assert data.mha.count[0] == 2 * n * (n + d) * 16 + d * (n + d) * 16
    assert data.iha.count[0] == 2 * n * (n + d) * 4 + d * (n + d) * 16 + 4 * 4**3
    assert data.iha_mixing.count[0] == 4 * 4 * 4 * 4
    assert data.tiled_mixing.count[0] == 4 * 4 * 4 * 2
    assert data.tiled.count[0] == data.iha.count[0] - 128
    assert all(k * d < n for k in data.mha.k)
    assert drawn.Curve((1, 10, 100), (3, 300, 30000)).slope == pytest.approx(2)
    assert [round(curve.slope, 1) for curve in (data.mha, data.iha, data.iha_mixing)] == [1.0, 0.5, 1.5]


def test_least_heads():
    data = data_of("least_heads")
    at = {name: [values[k - 1] for k in (1, 4, 25, 26, 49)] for name, values in data.least.items()}
    assert data.independent == 25
    assert at == {"one-width": [1, 4, 25, 26, 49], "projected": [1, 4, 25, 25, 25], "iha": [1, 2, 5, 6, 7],
                  "iha-projected": [1, 2, 5, 5, 5]}
    assert (data.shifts["mha"][9], data.shifts["iha"][9]) == (10, 4)


def test_crossover_map():
    # k = 4, d = 1: H = 2, a = 2, b = 0, (N+1) 4N > 32 from N = 3; k = 16: 24 N (N+1) > 256 from 3, > 128 from 2.
    # k = 5: H = 3, a = 2, b = 4, 4 (N^2 - d^2) > 108 from N = 7 for d = 4 and from 65 for d = 64.
    data = data_of("crossover_map")
    assert data.paper[1][:4] == (None, None, 4, 3)
    assert (data.paper[1][15], data.tiled[1][15]) == (3, 2)
    assert [data.paper[d][4] for d in (4, 64)] == [7, 65]
    assert (data.first, data.never) == (3, (1, 2))


def test_crossover_map_reads_the_first_k_off_the_counts():
    data = data_of("crossover_map")
    changed = {d: (*row[:9], 10**6, *row[10:]) for d, row in data.paper.items()}
    assert replace(data, paper=changed).first == 11


def test_cpm3_parameters():
    data = data_of("cpm3_parameters")
    four = data.n.index(4)
    assert {part: counts[four] for part, counts in data.parts["iha"].items()} == {
        "attention": 2 * 2 * 4 * 5 + 5 * 4 + 4 * 8, "mlp": 4 * 16 + 16, "total": 212, "printed": 37 * 32 + 64}
    assert {part: counts[four] for part, counts in data.parts["mha"].items()} == {
        "attention": 2 * 16 * 5 + 4 * 5, "mlp": 64 + 16, "total": 260, "printed": 256}
    assert data.by_cube(data.parts["mha"]["printed"]) == [4.0] * len(data.n)
    assert (data.missed_from, data.attained) == (5, 2)
    assert data.constant == pytest.approx(10 * sqrt(2))


def test_operator_span():
    data = data_of("operator_span")
    assert data.span == {4: (4, 16, 16, 16, 16, 16), 6: (6, 24, 36, 36, 36, 36), 9: (9, 36, 81, 81, 81, 81)}
    assert data.patterns[9] == (9, 36, 81, 144, 225, 324)
    assert [data.kinds[kind] for kind in ("multi-head", "grouped-query", "multi-query", "talking-heads")] == [
        tuple(range(1, 9))] * 4
    assert data.kinds["IHA, P = 2"] == (1, 4, 9, 16, 20, 24, 28, 32)
    assert data.kinds["IHA, P = H"] == (1, 4, 9, 16, 25, 36, 49, 64)


def test_border_rank():
    # x = (1, 1, 1) errs by eps, the weights reach 1 / eps; two heads take I and the shift.
    data = data_of("border_rank")
    assert data.error[:3] == (1, Fraction(1, 10), Fraction(1, 100))
    assert data.weight[:3] == (1, 10, 100)
    assert (data.n, data.least, data.exact_weight) == (3, 2, 1)


def test_repeated_tokens():
    data = data_of("repeated_tokens")
    one, zero = data.grid.index(1.0), data.grid.index(0.0)
    assert (data.heads[one], data.printed[one], data.line[one], data.printed_token[one]) == (1, 1, 1, 1)
    assert data.corrected[one] == pytest.approx(tanh(1))
    assert data.three[one] == pytest.approx((e - 1 / e) / (e + 1 / e + 1))
    assert data.corrected_token[data.grid.index(-0.5)] == pytest.approx(-0.5 * tanh(0.25))
    assert [data.flat[place][zero] for place in (0, 1, 3)] == pytest.approx([1, 1 / 3, tanh(log(4 / 3) / 2)])


def test_flat_causal():
    data = data_of("flat_causal")
    assert data.worst[2][1] == pytest.approx(3 - 2 * sqrt(2))
    assert data.worst[4][1] == pytest.approx(1 / 3)
    assert [data.worst[count][count] for count in data.worst] == pytest.approx([0] * 16, abs=1e-30)
    # p = 1/2, P = 4, J = 1: 3 (1/4) / (4 - 3/2).
    assert data.against_p[1][data.p.index(0.5)] == pytest.approx(0.3)
    for picked, errors in data.against_p.items():
        assert max(errors) <= data.worst[4][picked] + 1e-12


def test_soft_to_hard():
    data = data_of("soft_to_hard")
    assert data.threshold == {4: 51, 9: 136, 16: 255}
    assert data.measured[4][0] == Fraction(27, 4)
    for n, errors in data.measured.items():
        assert errors == tuple(Fraction(9 * (n - 1), base + n - 1) for base in data.bases)
        assert all((error < Fraction(1, 2)) == (base > data.threshold[n])
                   for error, base in zip(errors, data.bases, strict=True))
        assert tuple(data.curve[n][data.grid.index(base)] for base in data.bases) == errors


def test_worked_examples():
    data = data_of("worked_examples")
    k4, n4 = data.k4, data.n4
    assert {(column, value) for column, value in enumerate(k4.pattern[1, 0]) if value} == {(4, 1), (7, 1)}
    assert {(column, value) for column, value in enumerate(n4.pattern[1, 2]) if value} == {
        (1, Fraction(1, 2)), (6, Fraction(1, 2))}
    assert list(n4.pattern[0, 1]) == [Fraction(1, 8)] * 8
    assert n4.read.tolist() == [[True, False] * 4] * 2
    assert k4.output.tolist() == [[1, 10, 100, 1000], [10, 100, 1000, 0], [100, 1000, 0, 0], [1000, 0, 0, 0]]
    assert n4.output.tolist() == [[1, 2, 3, 4], [2, 3, 4, 1], [3, 4, 1, 2], [4, 1, 2, 3]]


def test_schedule_flops():
    # N = 128, P = 2, W = 16: local 4 (128 16 - 16 15 / 2) = 7712 pairs, global multi-head 128 129 / 2 = 8256.
    data = data_of("schedule_flops")
    pairs = {key: values[0] for key, values in data.ratios["pairs"].items()}
    assert data.n[0] == 128
    assert pairs["mha", 2] == Fraction(4 * 7712 + 8256, 5 * 8256)
    assert pairs["iha", 2] == Fraction(4 * 7712 + 4 * 8256, 5 * 8256)
    assert data.printed == Fraction(3, 5)
    # One token more in the window of a local layer adds at most P^2 N pairs, so the nearest is within half of that.
    for p in (2, 4):
        for n, value in zip(data.n, data.ratios["pairs"]["matched", p], strict=True):
            assert abs(value - 1) <= Fraction(4 * p * p * n, 2) / (5 * Fraction(n * (n + 1), 2))
    # Mixing adds P / d_h of the projections, 2 / 128, in four of five layers.
    size = 2 * 128 * 4 * 2560**2
    whole = 5 * size + Fraction(4 * 2, 128) * size + 2 * 20 * 256 * (4 * 7712 + 8256)
    assert data.ratios["flops"]["mha", 2][0] == whole / (5 * size + 2 * 20 * 256 * 5 * 8256)


# --- What a figure rests on ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_names_claims_of_the_catalogue_and_they_stand(name):
    claims = module(name).CLAIMS
    assert claims
    assert all(evidence.stands(evidence.rows(claim)) for claim in claims)


def test_a_figure_is_refused_when_a_claim_of_it_fails(monkeypatch, capsys, tmp_path):
    found = evidence.rows("2/flat-largest")
    wrong = tuple(replace(row, verdict=Verdict.FAILS) for row in found)
    monkeypatch.setattr(evidence, "rows", lambda name: wrong if name == "2/flat-largest" else found)
    with pytest.raises(Disappointed, match="2/flat-largest: fails on p, J/P symbolic"):
        rendered("flat_causal")
    assert main(["flat_causal", "--out", str(tmp_path)]) == 1
    assert "2/flat-largest" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_claims_that_no_case_speaks_of_do_not_stand():
    assert not evidence.stands([])
    with pytest.raises(ValueError, match="no claim '2/nonsense'"):
        evidence.rows("2/nonsense")


def test_the_foot_says_what_is_known_and_how():
    text = evidence.standing("2/flat-largest", "2/flat-printed", "Crossovers/smaller")
    assert text == ("2/flat-largest, Crossovers/smaller: holds (every size, exact); "
                    "2/flat-printed: fails, as expected of what is printed")


# --- The command line ---------------------------------------------------------------------------------------------


def refused(arguments, capsys, code=2):
    """The one line that the command answers with."""
    try:
        got = main(arguments)
    except SystemExit as stopped:
        got = stopped.code
    shown = capsys.readouterr()
    assert got == code
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("python -m figures: ")
    return shown.err


def test_drawing_writes_the_named_figures_once_and_prints_their_paths(tmp_path, capsys):
    assert main(["crossover_map", "crossover_map", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'crossover_map.svg'}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["crossover_map.svg"]
    assert (tmp_path / "crossover_map.svg").read_bytes() == committed("crossover_map")


def test_an_unknown_name_is_refused_with_the_nearest(tmp_path, capsys):
    line = refused(["crossover_map", "crossover-map", "--out", str(tmp_path)], capsys)
    assert "did you mean 'crossover_map'?" in line
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_refused(capsys):
    assert "svg" in refused(["--format", "jpg"], capsys)
    with pytest.raises(ValueError, match="unknown format 'jpg'; wanted one of svg, png, pdf"):
        rendered("crossover_map", "jpg")


@pytest.mark.parametrize("place", ["missing", "file", "file/below"])
def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_drawn(place, tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("figures.__main__.rendered", lambda *_: pytest.fail("was drawn"))
    assert place in refused(["crossover_map", "--out", str(tmp_path / place)], capsys)


def test_a_file_in_the_way_of_a_figure_is_refused(tmp_path, capsys):
    (tmp_path / "crossover_map.svg").mkdir()
    assert "is a folder" in refused(["crossover_map", "--out", str(tmp_path)], capsys)


def test_a_full_disk_is_one_line_and_leaves_no_half_file(tmp_path, capsys, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device", str(source))

    monkeypatch.setattr("os.replace", full)
    assert "No space left" in refused(["crossover_map", "--out", str(tmp_path)], capsys)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_is_130(tmp_path, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("figures.__main__.rendered", interrupted)
    assert "interrupted" in refused(["--out", str(tmp_path)], capsys, 130)
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_it_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("figures.__main__.find_spec", lambda name: None)
    assert "iha-theory[figures]" in refused(["--out", str(tmp_path)], capsys)


# --- Who loads matplotlib -----------------------------------------------------------------------------------------


def loads(path):
    """The modules that a file imports anywhere."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_only_the_figures_import_matplotlib():
    drawing = {path.parent.name for folder in ("iha_theory", "constructions", "figures", "benchmarks", "docs", "proofs")
               for path in (ROOT / folder).rglob("*.py") if any(name.startswith("matplotlib") for name in loads(path))}
    assert drawing == {"figures"}


def test_help_and_names_load_no_matplotlib():
    code = "import sys, figures, figures.__main__\nprint('matplotlib' in sys.modules, 'numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.split() == ["False", "False"]


def test_drawing_starts_no_window_system():
    code = f"import figures, sys\nfigures.rendered({NAMES[2]!r})\nprint('matplotlib.pyplot' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "False"
    assert figures.FORMATS == ("svg", "png", "pdf")
