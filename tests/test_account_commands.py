"""The commands counts and flops as their users meet them: three formats, files, and one clear line for bad
input."""

import csv
import io
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from iha_theory.account_commands import ACCOUNTS, FLOP_TABLES, sizes
from iha_theory.tables import Table, decimal, written

ROOT = Path(__file__).parent.parent


def rows_of(run, *arguments):
    code, out, err = run(*arguments, "--format", "json")
    assert (code, err) == (0, "")
    return json.loads(out)["rows"]


def test_a_bank_is_counted_for_every_k_d_and_n(run):
    rows = rows_of(run, "counts", "--k", "3-4", "--d", "1,2", "--n", "2")
    assert [(row["k"], row["d"], row["routing"]) for row in rows] == [
        (k, d, name) for k in (3, 4) for d in (1, 2) for name in ("P=H", "tiled")]
    first = rows[0]
    assert (first["H"], first["L"], first["P"], first["IHA"], first["MHA"]) == (2, 2, 2, 68, 45)
    assert first["smaller"] is False
    assert first["MHA/IHA"] == round(45 / 68, 6)


def test_built_weights_are_counted_beside_the_closed_form(run):
    for row in (*rows_of(run, "counts", "filter", "--k", "5,16", "--d", "2", "--n", "3", "--built"),
                *(row for row in rows_of(run, "counts", "cpm3", "--n", "1-6", "--built"))):
        assert row["IHA built"] == row.get("IHA", row.get("total IHA"))
        assert row["MHA built"] == row.get("MHA", row.get("total MHA"))


def test_given_pseudo_heads_take_the_fewest_heads(run):
    rows = rows_of(run, "counts", "--k", "16,25", "--n", "6", "--pseudo-heads", "2")
    assert [(row["routing"], row["H"], row["L"], row["P"]) for row in rows] == [("P=2", 4, 4, 2),
                                                                                ("P=2", 8, 4, 2)]


def test_the_crossover_is_printed_with_never_where_there_is_none(run):
    rows = rows_of(run, "counts", "crossover", "--k", "1-5", "--d", "1")
    assert [row["least N"] for row in rows if row["routing"] == "P=H"] == [None, None, 4, 3, 6]
    below = [row["from kd + 1 on"] for row in rows if row["routing"] == "P=H"]
    assert below == [None, None, True, True, True]


def test_cpm3_shows_where_the_printed_lower_bound_is_missed(run):
    rows = rows_of(run, "counts", "cpm3", "--n", "1-9")
    assert [row["N"] for row in rows if row["total MHA"] < row["printed bound MHA"]] == [5, 6, 7, 8, 9]
    assert all(row["total IHA"] <= row["printed bound IHA"] for row in rows)
    assert [row["N"] for row in rows if row["total smaller"]] == [4, 6, 7, 8, 9]


def test_a_layer_is_listed_weight_by_weight(run):
    rows = rows_of(run, "counts", "layer", "--heads", "2", "--pseudo-heads", "3", "--head-dim", "5",
                   "--width", "7")
    assert {row["weight"]: row["parameters"] for row in rows} == {
        "w_q": 70, "w_k": 70, "w_v": 70, "alpha_q": 12, "alpha_k": 12, "alpha_v": 12, "collapse": 12,
        "Q": 210,
        "mixing": 48, "all": 258}


def test_the_model_is_2_4_billion_in_one_reading(run):
    rows = rows_of(run, "counts", "model", "--pseudo-heads", "2")
    assert [(row["FFN matrices"], row["embeddings"], row["total"]) for row in rows if row["2.4B"]] == [
        (2, "shared", 2_373_194_240)]
    assert {row["mixing, 26 layers"] for row in rows} == {26 * 3200}


def test_the_schedule_of_the_paper_costs_a_little_less_than_the_baseline(run):
    rows = {row["layer"]: row for row in rows_of(run, "flops", "--n", "8192", "--pseudo-heads", "2")}
    share = 1 - Fraction(8192, 4) / (5 * 8193) - Fraction(2, 5 * 8193)
    assert Fraction(rows["schedule"]["pairs/MHA"]) == share
    assert rows["local-iha"]["window"] == 1024
    assert rows["schedule"]["total"] == 4 * rows["local-iha"]["total"] + rows["global-mha"]["total"]
    assert rows["baseline"]["total"] == 5 * rows["global-mha"]["total"]
    assert Fraction(rows["local-iha"]["mixing"], rows["local-iha"]["projections"]) == Fraction(2, 128)


def test_the_window_that_matches_is_printed_with_what_remains(run):
    [row] = rows_of(run, "flops", "match", "--n", "8192", "--pseudo-heads", "2")
    assert (row["window"], row["matched"]) == (1098, True)
    assert Fraction(row["mismatch"]) == Fraction(row["cost"] - row["baseline"],
                                                 row["baseline"]) == Fraction(977, 3495680)
    assert abs(row["N(1-sqrt(1-1/P^2))"] - 8192 * (1 - 0.75**0.5)) < 1e-5
    [flat] = rows_of(run, "flops", "match", "--mask", "flat", "--measure", "flops")
    assert Fraction(flat["in tokens"]) == Fraction(flat["window"], 2)
    [never] = rows_of(run, "flops", "match", "--schedule", "4:local-iha,1:global-iha", "--pseudo-heads", "4")
    assert (never["window"], never["matched"], never["N(1-sqrt(1-1/P^2))"]) == (1, False, None)


def test_the_cache_of_base_and_of_mixed_keys(run):
    rows = {row["layer"]: row for row in rows_of(run, "flops", "cache", "--n", "64", "--heads", "4",
                                                 "--head-dim", "8",
                                                 "--pseudo-heads", "2", "--bytes", "2")}
    assert rows["global-mha"]["bytes/token"] == 2 * 4 * 16
    assert rows["local-iha, base"]["bytes/token"] == 2 * 4 * 16
    assert rows["local-iha, mixed"]["bytes/token"] == 2 * 4 * 2 * 16
    assert rows["for comparison: global-gqa, 4 groups"]["bytes/token"] == 2 * 4 * 16
    assert rows["local-iha, base"]["tokens kept"] == 64 // 8
    assert rows["schedule, base"]["bytes kept"] == 4 * 128 * 8 + 128 * 64
    assert rows["schedule, mixed"]["bytes kept"] == 4 * 256 * 8 + 128 * 64


def test_a_window_that_is_no_whole_number_is_said_to_be_rounded(run):
    code, out, _ = run("flops", "--n", "10", "--pseudo-heads", "2")
    assert code == 0
    assert "N/(2P^2) is no whole window at N=10, P=2; it was rounded down" in out


def same(text, value):
    """Whether a cell of the CSV says what the JSON says."""
    if value is None or isinstance(value, bool):
        return text == {None: "", True: "yes", False: "no"}[value]
    return text == value if isinstance(value, str) else Fraction(text) == Fraction(str(value))


@pytest.mark.parametrize("command", [*(("counts", name) for name in ACCOUNTS),
                                     *(("flops", name) for name in FLOP_TABLES)])
def test_the_three_formats_hold_the_same_numbers(run, command):
    tables = {style: run(*command, "--format", style) for style in ("table", "csv", "json")}
    assert all((code, err) == (0, "") for code, _, err in tables.values())
    document = json.loads(tables["json"][1])
    lines = list(csv.reader(io.StringIO(tables["csv"][1])))
    assert lines[0] == document["columns"]
    assert len(lines) == 1 + len(document["rows"])
    for line, row in zip(lines[1:], document["rows"], strict=True):
        for text, value in zip(line, row.values(), strict=True):
            assert same(text, value), (text, value)
    shown = tables["table"][1]
    assert shown.startswith(document["title"])
    assert shown.count("\n") >= len(lines) + 2


def test_a_table_is_written_whole_or_not_at_all(run, tmp_path):
    target = tmp_path / "counts.csv"
    code, out, err = run("counts", "--k", "4", "--format", "csv", "--out", target)
    assert (code, out, err) == (0, "", "")
    assert target.read_text() == run("counts", "--k", "4", "--format", "csv")[1]
    assert [path.name for path in tmp_path.iterdir()] == ["counts.csv"]
    code, out, err = run("flops", "--n", "10", "--window", "11", "--out", target)
    assert (code, out) == (2, "")
    assert target.read_text().startswith("k,d,N,routing")


@pytest.mark.parametrize(("arguments", "message"), [
    (["counts", "everything"], "invalid choice: 'everything'"),
    (["counts", "--k", "0"], "got '0', wanted whole numbers from 1"),
    (["counts", "--k", "-3"], "got '-3', wanted whole numbers from 1"),
    (["counts", "--k", "2.5"], "got '2.5', wanted whole numbers from 1"),
    (["counts", "--k", ""], "got '', wanted whole numbers from 1"),
    (["counts", "--k", "1,,2"], "got '1,,2', wanted whole numbers from 1"),
    (["counts", "--k", "²"], "got '²', wanted whole numbers from 1"),
    (["counts", "--k", "9-3"], "9-3 runs backwards; wanted 3-9"),
    (["counts", "--k", "1-99999"], "'1-99999' holds more than 10000 sizes"),
    (["counts", "--k", "9" * 5000], "wanted whole numbers from 1"),
    (["counts", "--k", "1-2000", "--n", "1-2000"], "4000000 rows, the limit is 10000"),
    (["counts", "cpm3", "--k", "3"], "the table cpm3 takes no --k; it takes --n, --built"),
    (["counts", "--format", "xml"], "invalid choice: 'xml'"),
    (["counts", "--out", "no/such/folder/x.csv"], "there is no folder no/such/folder"),
    (["counts", "--out", "."], "is a folder"),
    (["counts", "--built", "--k", "900", "--n", "900"], "--built would make"),
    (["counts", "--built", "--pseudo-heads", "2"], "leave --pseudo-heads out"),
    (["flops", "everything"], "invalid choice: 'everything'"),
    (["flops", "--n", "10", "--window", "11"], "window: got 11 tokens, wanted 1 to 10"),
    (["flops", "--schedule", "4:local"], "kind '': wanted one of mha, gqa, iha"),
    (["flops", "--schedule", "local-iha"], "'local-iha' is not of the form"),
    (["flops", "--schedule", "0:local-iha"], "'0:local-iha' is not of the form"),
    (["flops", "--groups", "3", "--schedule", "1:global-gqa"], "3 key-value heads do not divide H=20"),
    (["flops", "match", "--schedule", "5:global-mha"], "0 kinds of windows, wanted local layers of one kind"),
    (["flops", "--bytes", "2"], "the table schedule takes no --bytes"),
    (["flops", "--heads", "two"], "got 'two', wanted whole numbers from 1"),
    (["flops", "--mask", "none"], "invalid choice: 'none'"),
])
def test_bad_input_gets_one_clear_line_and_exit_code_2(run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    [line] = err.splitlines()
    assert line.startswith(f"iha-theory {arguments[0]}: ")
    assert message in line


def test_sizes_are_read_as_ranges_in_order_and_once():
    assert sizes("4") == (4,)
    assert sizes("1-3, 9,2-4") == (1, 2, 3, 9, 4)


def test_a_table_knows_its_width_and_its_formats():
    with pytest.raises(ValueError, match="row 0 has 1 cells for 2 columns"):
        Table("title", ("a", "b"), ((1,),))
    table = Table("title", ("name", "value"), (("x", Fraction(1, 3)), ("y", None), ("z", True)), ("note",))
    assert written(table, "table") == (
        "title\n\nname  value\n----  -----\nx       1/3\ny         -\nz       yes\n\nnote\n")
    assert written(table, "csv") == "name,value\nx,1/3\ny,\nz,yes\n"
    assert json.loads(written(table, "json"))["rows"] == [
        {"name": "x", "value": "1/3"}, {"name": "y", "value": None}, {"name": "z", "value": True}]
    with pytest.raises(ValueError, match="format 'xml': wanted one of table, csv, json"):
        written(table, "xml")


def test_a_decimal_is_the_nearest_of_six_digits():
    assert decimal(Fraction(2, 3)) == 0.666667
    assert decimal(3) == 3.0


def test_the_options_of_both_commands_load_nothing_heavy():
    script = ("import sys, iha_theory.account_commands as commands\n"
              "print(sorted({'numpy', 'sympy', 'flint', 'constructions'} & set(sys.modules)))\n"
              "from iha_theory.cli import main\n"
              "main(lambda: 1 / 0, ['flops', '--n', '8'])\n"
              "print('constructions' in sys.modules)\n")
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT,
                            check=True)
    lines = result.stdout.splitlines()
    assert lines[0] == "[]"
    assert lines[-1] == "False"
