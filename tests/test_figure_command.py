"""The command that draws: what it writes, and one line for bad input."""

import pytest

from figures import rendered
from figures.__main__ import main
from tests.drawn_figures import committed


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
