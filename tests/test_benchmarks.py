"""The benchmarks' machinery: what is rendered, kept and written; never that a time is good."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks import __main__ as program
from benchmarks import decoding, layer, machine, memory, results, tables
from benchmarks.record import Record
from benchmarks.tables import QUICK, Case, Table

COMMITTED = Path(results.__file__).parent / "RESULTS.md"
KEY = {"code": "commit 0123; code 4567", "versions": "python 3.11, torch 2.13", "machine": "processor a thing"}
MACHINE = {"processor": "a thing", "cores": "2"}


def shop(calls=None):
    """Two tables of two parts; ``calls`` lists what was measured."""
    def case(name, *numbers, **bars):
        def measure():
            if calls is not None:
                calls.append(name)
            return numbers
        return Case(name, measure, {key.replace("_", " "): bar for key, bar in bars.items()})

    return (Table("core", "Apples", "Weighed by hand.", ("seconds", "ratio"),
                  (case("red, ripe", 0.01234, 1.0996, ratio=1.1), case("green", 1234.5, 1.1006, ratio=1.1)),
                  lambda rows: (f"{len(rows)} apples.",)),
            Table("layer", "Pears", "Counted.", ("seconds", "peak GiB"), (case("all", 31.0, 0.5, seconds=30, peak_GiB=1),)))


def record_of(path=None, key=KEY):
    record = Record(path, key)
    record.sittings = [{"date": "2026-01-02 03:04 UTC", "load": 0.25, "busy": 0.01}]
    return record


def measured(path=None):
    record = record_of(path)
    list(record.measured(shop()))
    record.others = [1.0, 100.0]
    return record


def test_a_page_of_given_measurements_word_for_word():
    assert results.page(shop(), measured(), MACHINE) == results.INTRODUCTION + """
|  |  |
| --- | --- |
| processor | a thing |
| cores | 2 |
| versions | python 3.11, torch 2.13 |
| code | commit 0123; code 4567 |
| measured | 2026-01-02 03:04 UTC |
| load at the start (1 minute) | 0.25 |
| processors busy before the start | 1% |
| taken by others during the measurements | 1% |
| idle | yes |

2 of the 4 numbers that have a bar are within it. These are not:

* Apples: green: ratio 1.101 (at most 1.1)
* Pears: all: seconds 31.0 (at most 30)

## Apples

Weighed by hand.

| what | seconds | ratio |
| --- | ---: | ---: |
| red, ripe | 0.0123 | 1.100 (at most 1.1) |
| green | 1234 | **1.101 (at most 1.1)** |

2 apples.

## Pears

Counted.

| what | seconds | peak GiB |
| --- | ---: | ---: |
| all | **31.0 (at most 30)** | 0.500 (at most 1) |
"""


def test_a_page_within_all_bars_says_so():
    record = measured()
    record.rows["Apples"]["green"][1] = record.rows["Pears"]["all"][0] = 1.0
    assert "\nAll 4 numbers that have a bar are within it.\n" in results.page(shop(), record, MACHINE)


def test_a_number_that_is_none_misses_its_bar():
    assert results.cell("ratio", float("nan"), shop()[0].cases[0]) == "**nan (at most 1.1)**"


def test_a_page_is_read_back():
    found = results.parsed(results.page(shop(), measured(), MACHINE))
    assert found == {"Apples": {"red, ripe": {"seconds": (0.0123, None), "ratio": (1.1, 1.1)},
                                "green": {"seconds": (1234, None), "ratio": (1.101, 1.1)}},
                     "Pears": {"all": {"seconds": (31, 30), "peak GiB": (0.5, 1)}}}


@pytest.mark.parametrize(("old", "new"), [("| 1234 |", "| soon |"), ("| 1234 |", "|"), ("| green |", "| red, ripe |"),
                                          ("(at most 30)", "(at most what)")])
def test_a_broken_page_is_refused(old, new):
    text = results.page(shop(), measured(), MACHINE)
    assert old in text
    with pytest.raises(ValueError, match="wanted|could not convert"):
        results.parsed(text.replace(old, new))


def test_a_page_with_a_row_missing_is_refused():
    record = measured()
    del record.rows["Apples"]["green"]
    with pytest.raises(ValueError, match="1 rows were not measured, the first: Apples, green"):
        results.page(shop(), record, MACHINE)


@pytest.mark.parametrize(("shares", "said"), [([0.01, 0.04], "yes"), ([0.01, 0.2], "NO"), ([0.3, 0.01], "NO"),
                                              ([None, 0.01], "unknown")])
def test_whether_the_machine_was_idle(shares, said):
    assert machine.verdict(shares).startswith(said)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who is busy")
def test_others_are_told_from_oneself():
    bystanders = machine.Bystanders()
    assert bystanders.taken() is not None
    own = machine._own_seconds()
    while machine._own_seconds() - own < 0.3:
        sum(range(10**5))
    others, available = bystanders.taken() or (0.0, 0.0)
    # All that there was, less what this process took; a clock tick of slack for each counter that is read.
    assert 0 <= others <= available - 0.3 + 0.2


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    calls = []
    path, page = tmp_path / "measured.json", tmp_path / "RESULTS.md"

    def stop():
        raise KeyboardInterrupt

    apples, pears = shop(calls)
    stopped = replace(pears, cases=(replace(pears.cases[0], measure=stop),))
    with pytest.raises(KeyboardInterrupt):
        program.run((apples, stopped), record_of(path), program.PARTS, page, lambda line: None)
    assert calls == ["red, ripe", "green"]
    assert not page.exists()
    said = []
    program.run((apples, pears), Record(path, KEY), program.PARTS, page, said.append)
    assert calls == ["red, ripe", "green", "all"]
    assert set(results.parsed(page.read_text())) == {"Apples", "Pears"}
    assert "[  1/3] red, ripe: 0.01234  1.1  (kept from before)" in said
    assert "over its bar: Pears: all: seconds 31.0 (at most 30)" in said
    assert not path.exists()


@pytest.mark.parametrize("name", ["code", "versions", "machine"])
def test_what_was_measured_elsewhere_is_not_taken_over(tmp_path, name):
    path = tmp_path / "measured.json"
    measured(path).save()
    assert Record(path, KEY).rows
    assert Record(path, {**KEY, name: "another"}).rows == {}


def test_a_partial_run_writes_nothing_and_says_what_is_missing(tmp_path):
    said, page = [], tmp_path / "RESULTS.md"
    page.write_text("from before")
    path = tmp_path / "measured.json"
    program.run(shop(), record_of(path), ["core"], page, said.append)
    assert page.read_text() == "from before"
    assert "RESULTS.md was not written: 1 rows of layer are not measured" in said[-1]
    program.run(shop(), Record(path, KEY), ["layer"], page, said.append)
    assert "# How fast" in page.read_text()


def test_a_quick_run_writes_nothing(tmp_path):
    said = []
    program.run(shop(), record_of(), ["core"], None, said.append)
    assert not list(tmp_path.iterdir())
    assert any("| green | 1234 | **1.101 (at most 1.1)** |" in line for line in said)


def test_a_record_that_is_none_and_a_row_of_the_wrong_length_are_refused(tmp_path):
    path = tmp_path / "measured.json"
    path.write_text(json.dumps({"key": KEY}))
    with pytest.raises(ValueError, match=r"measured.json: no record of measurements .*delete it"):
        Record(path, KEY)
    wrong = Table("core", "Plums", "", ("seconds",), (Case("blue", lambda: (1.0, 2.0)),))
    with pytest.raises(ValueError, match="Plums, blue: got 2 numbers"):
        list(record_of().measured([wrong]))


def test_the_command_ends_well_when_interrupted_or_refused(tmp_path, monkeypatch, capsys):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "run", stop)
    assert program.main(["--only", "core"], tmp_path) == 130
    assert "the same command goes on" in capsys.readouterr().err
    (tmp_path / "measured.json").write_text("{")
    assert program.main([], tmp_path) == 2
    assert "delete it to measure anew" in capsys.readouterr().err


def test_medians_and_ratios_are_those_of_the_rounds(monkeypatch):
    clock = iter([9, 9, *(1, 2), *(5, 2), *(4, 2)])
    monkeypatch.setattr(tables, "seconds", lambda work: next(clock))
    assert tables.compared(lambda: 0, lambda: 0, tables.Effort(3, 3, 0)) == (4, 2, 2)


def test_a_round_calls_each_side_as_often_as_it_says():
    calls = []
    tables.compared(lambda: calls.append("work"), lambda: calls.append("base"), tables.Effort(2, 2, 0), repeat=3)
    assert calls == 3 * (["work"] * 3 + ["base"] * 3)


def test_a_line_is_fitted():
    assert tables.line_fit([1, 2, 4], [5, 7, 11]) == pytest.approx((3, 2, 0))
    assert tables.line_fit([1, 2, 4, 8], [1, 4, 16, 64])[2] > 0.3


def test_the_peak_of_a_command_is_its_own():
    assert 0.25 < tables.command("-c", "bytearray(2**28).translate(None)")[1] < 0.8
    with pytest.raises(RuntimeError, match=r"(?s)exit code 1: .*no such thing"):
        tables.command("-c", "raise ValueError('no such thing')")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system does not count peaks anew")
def test_the_memory_of_a_pass_is_told_from_what_came_before():
    size = layer.Size(1, 512, 64, 2, 4)
    tensors = 8 * size.n * size.p * size.d * 4 / 2**20
    # In a fresh process: here the allocator has room left from other tests.
    assert tensors < memory.peak(f"call({size}, 'flat')") < 4 * tensors


def test_a_dense_mask_would_be_seen():
    """Quadratic peaks are off the line, and the slope is over its bar."""
    x = list(memory._LENGTHS)
    dense = [4.0 * n**2 / 2**20 for n in x]
    assert tables.line_fit(x, dense)[2] > 0.3
    said = memory.linearity({"dense": (*dense, 1.0, 1.0, 1.0, 40.0)})[0]
    assert "4.00 to 4.00 times" in said


def test_the_two_caches_hold_the_same_token():
    size = decoding.Size(2, 1, 16, 2, 3)
    steps = decoding.Steps(size, 5)
    assert torch.allclose(steps.from_mixed(), steps.from_base(), atol=1e-6)
    assert steps.kib_per_token() == (3 * 2 * 16 * 4 / 1024, 2 * 16 * 4 / 1024)
    cache = steps.module.new_cache(2, 6)
    assert steps.kib_per_token()[0] == cache.numbers_per_token * 4 / 1024


def test_the_names_of_the_tables_and_their_rows_are_distinct():
    found = program.all_tables(QUICK)
    assert len({table.title for table in found}) == len(found)
    assert {table.part for table in found} == set(program.PARTS)
    for table in found:
        assert len({case.name for case in table.cases}) == len(table.cases)
        for case in table.cases:
            assert set(case.bars) <= set(table.columns)
            assert "|" not in case.name


def test_the_committed_page_names_all_that_is_measured():
    """And repeats every bar, bold where the number misses it."""
    text = COMMITTED.read_text()
    found, wanted = results.parsed(text), program.all_tables(tables.FULL)
    assert list(found) == [table.title for table in wanted]
    for table in wanted:
        assert list(found[table.title]) == [case.name for case in table.cases]
        for case in table.cases:
            row = found[table.title][case.name]
            assert list(row) == list(table.columns)
            assert {heading: bar for heading, (_, bar) in row.items() if bar is not None} == dict(case.bars)
            for heading, (value, _) in row.items():
                assert value >= 0
                missed = f"* {table.title}: {case.name}: {heading} " in text
                assert missed == results.is_missed(heading, value, case)
    for fact in ("processor", "cores", "memory", "system", "versions", "code", "measured", "idle"):
        assert re.search(rf"^\| {fact} \| .+ \|$", text, re.M), fact
