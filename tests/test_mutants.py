"""The runs of the mutants: what is wording, which tests bear on a function, what a child's end means, what is found."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from tests import mutant_children, mutant_runs, mutants
from tests.mutant_map import Bearing, function_of, homes, module_of
from tests.mutants import EQUIVALENT, change, equivalent, is_wording, sources

BEARING = Bearing(
    imported=["book.tables.x_row"],
    loaded=["book.bricks", "book.tables", "book.all", "book.alone"],
    dependents={"book.bricks": ["book.all", "book.bricks", "book.tables"], "book.tables": ["book.all", "book.tables"],
                "book.alone": ["book.alone"]},
    sections=[(0, 0, ["book.tables"]), (0, 1, ["book.alone"]), (1, 0, ["book.all"])],
    files={"tests/test_tables.py": ["book.tables"], "tests/test_other.py": ["book.alone"]},
    table_files=["tests/test_sections.py"],
    recorded={"book.tables.x_row": ["tests/test_first.py::test_any"],
              "book.tables.x_cell": ["tests/test_cell.py::test_cell"]},
    seconds={"tests/test_tables.py::test_a": 1.0, "tests/test_cell.py::test_cell": 2.0, "tests/test_other.py::test_b": 4.0},
)


def test_a_function_that_runs_on_import_is_borne_by_the_sections_of_its_users():
    assert BEARING.own_sections("book.tables.x_row") == [(0, 0), (1, 0)]
    assert BEARING.own_tests("book.tables.x_row") == ["tests/test_cell.py::test_cell", "tests/test_first.py::test_any"]
    assert BEARING.own_files("book.tables") == ["tests/test_tables.py"]


def test_any_other_function_is_borne_by_the_tests_that_call_it():
    assert BEARING.own_sections("book.tables.x_cell") == []
    assert BEARING.own_tests("book.tables.x_cell") == ["tests/test_cell.py::test_cell"]


def test_only_what_a_module_cannot_reach_is_loaded_before_its_change():
    assert BEARING.independent("book.tables") == ["book.bricks", "book.alone"]
    assert BEARING.independent("book.bricks") == ["book.alone"]
    assert BEARING.independent("book") == []


def test_the_files_of_a_function_are_those_that_exist(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    for name in ("test_tables.py", "test_sections.py", "test_cell.py", "test_other.py"):
        (tmp_path / "tests" / name).touch()
    assert mutant_children.files_of(BEARING, "book.tables.x_row") == [
        "tests/test_cell.py", "tests/test_sections.py", "tests/test_tables.py"]
    assert mutant_children.files_of(BEARING, "book.tables.x_cell") == ["tests/test_cell.py", "tests/test_tables.py"]
    assert mutant_children.expected_seconds(BEARING, "book.tables.x_cell") == 3.0


def test_names_of_mutants():
    assert function_of("book.tables.x_row__mutmut_12") == "book.tables.x_row"
    assert module_of("book.tables.xǁTableǁrow__mutmut_3") == "book.tables"


def test_homes_are_found_through_closures_and_records():
    def of(value):
        return lambda: value

    inner = of(of(BEARING.independent))
    assert set(homes({"any": (inner,)}, set())) == {__name__, "tests.mutant_map"}


@pytest.mark.parametrize(("before", "after", "wording"), [
    ('f("two words")', 'f("XXtwo wordsXX")', True),
    ('f("two words")', 'f("TWO WORDS")', True),
    ('f("word")', 'f("XXwordXX")', False),
    ('f(a, "i j -> j i")', 'f(a, "I J -> J I")', False),
    ('f("two words", 1)', 'f("two words", 2)', False),
    ('f("two words", 1)', 'f("TWO WORDS", 2)', False),
    ('f("two words")', "f(None)", False),
    ('f(f"two words {n}")', 'f(f"TWO WORDS {n}")', True),
    ('f(f"two words {n}")', 'f(f"two words {m}")', False),
    ("f(1)", "f(2)", False),
])
def test_wording_is_a_change_of_prose_alone(before, after, wording):
    assert is_wording(before, after) is wording


def test_a_mutant_is_read_by_its_lines():
    lines = ["", "    def x_row__mutmut_orig(a):", "        return a + 1",
             "    def x_row__mutmut_7(a):", "        return a - 1"]
    before, after = sources("book.tables.x_row__mutmut_7", {"x_row__mutmut_orig": [2, 3], "x_row__mutmut_7": [4, 5]}, lines)
    assert before == "def function(a):\n    return a + 1"
    assert change(before, after) == "-    return a + 1\n+    return a - 1"


def test_an_equivalent_mutant_has_a_reason():
    text = "# One\n# reason.\n\nm.x_f\n-a\n+b\n\nm.x_g\n-c\n\n# Another.\n\nm.x_f\n-a\n+d\n"
    assert equivalent(text) == {"m.x_f\n-a\n+b": "One reason.", "m.x_g\n-c": "One reason.", "m.x_f\n-a\n+d": "Another."}
    known = equivalent(EQUIVALENT.read_text())
    assert all(reason for reason in known.values())
    assert all(survivor.split(".x")[0].startswith(("constructions", "iha_theory")) and "\n" in survivor for survivor in known)


@pytest.mark.parametrize(("end", "result"), [
    (lambda: os._exit(0), "survived"), (lambda: os._exit(1), "killed"), (lambda: os._exit(2), "killed"),
    (lambda: os._exit(5), "no tests"), (lambda: os.kill(os.getpid(), signal.SIGXCPU), "timeout"),
    (lambda: os.kill(os.getpid(), signal.SIGALRM), "timeout"), (lambda: os.kill(os.getpid(), signal.SIGTERM), "crash"),
])
def test_how_a_child_ends_is_what_became_of_its_mutant(end, result):
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        end()
    assert mutant_children.result_of(os.waitpid(child, 0)[1]) == result


def test_a_result_holds_as_long_as_what_it_rests_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = mutant_children.Ledger("s1", "t1")
    assert ledger.known() == {}
    (tmp_path / mutant_children.RESULTS).write_text(
        '{"mutant": "a", "result": "killed", "of": "s1"}\n{"mutant": "b", "result": "survived", "of": "t1"}\n'
        '{"mutant": "c", "result": "timeout", "of": "s0"}\n{"mutant": "d", "result": "no tests", "of": "t0"}\n')
    assert ledger.known() == {"a": "killed", "b": "survived"}
    ledger.add("c", "timeout", "", 0.0)
    ledger.add("d", "no tests", "", 0.0)
    assert ledger.known() == {"a": "killed", "b": "survived", "c": "timeout", "d": "no tests"}
    assert mutant_children.Ledger("s1", "t2").known() == {"a": "killed", "c": "timeout"}


def test_a_child_tells_which_test_failed_even_if_what_it_started_lives_on():
    wait, go = os.pipe()
    heard, answer = os.pipe()

    def run(report: int) -> NoReturn:
        if os.fork():
            os.write(report, b"tests/test_a.py::test_b\nmore")
            os._exit(1)
        signal.alarm(20)
        os.close(heard)
        os.write(answer, os.read(wait, 1))
        os._exit(0)

    assert mutant_children.outcome(run) == ("killed", "tests/test_a.py::test_b")
    os.close(answer)
    os.write(go, b"!")
    assert os.read(heard, 1) == b"!", "the one that lived on was waited for"
    assert mutant_children.outcome(lambda _: os._exit(0)) == ("survived", "")


MODULE = """
import os

def changed(name):
    return os.environ.get("MUTANT_UNDER_TEST") == f"cell.{name}"

def x_one():
    while changed("x_one__mutmut_3"):
        pass
    return 2 if changed("x_one__mutmut_1") else 1

ON_IMPORT = x_one()
"""
TESTS = """
import os, pytest, cell

def test_value():
    assert cell.x_one() == 1

def test_end():
    assert os.environ["MUTANT_UNDER_TEST"] != "cell.x_one__mutmut_4"

def test_slow():
    assert os.environ["MUTANT_UNDER_TEST"] != "cell.x_one__mutmut_2"

def test_not_recorded():
    raise AssertionError
"""
SCRIPT = """
from tests.mutant_children import Ledger, serve_called
from tests.mutant_map import Bearing

tests = ["checks/test_cell.py::test_value", "checks/test_cell.py::test_end", "checks/test_cell.py::test_slow"]
bearing = Bearing(imported=[], loaded=[], dependents={}, sections=[], files={}, table_files=[],
                  recorded={"cell.x_one": tests}, seconds={tests[0]: -3.8, tests[1]: 0.05, tests[2]: 1.1})
serve_called([f"cell.x_one__mutmut_{n}" for n in range(1, 5)], bearing, [], Ledger("s", "t"))
"""


def test_a_session_forks_a_child_for_each_mutant_and_runs_the_tests_that_are_recorded(tmp_path):
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "test_cell.py").write_text(TESTS)
    (tmp_path / "cell.py").write_text(MODULE)
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1])])
    process = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, check=True,
                             capture_output=True, text=True)
    assert process.stdout.startswith("\nno tests ran in")
    found = [json.loads(line) for line in (tmp_path / mutant_children.RESULTS).read_text().splitlines()]
    assert [(line["result"], line["by"]) for line in found] == [
        ("killed", "checks/test_cell.py::test_value"), ("survived", ""), ("timeout", ""),
        ("killed", "checks/test_cell.py::test_end")]


def test_a_test_that_fails_without_any_change_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = mutant_children.Ledger("s", "t")

    def serve(mutants, bearing, options, ledger):
        ledger.add(mutants[0], result, "tests/test_a.py::test_b", 0.0)

    monkeypatch.setattr(mutant_runs, "serve_called", serve)
    result = "survived"
    mutant_runs.check_unchanged(BEARING, [], ledger)
    result = "killed"
    with pytest.raises(RuntimeError, match="without any change, the tests end with killed tests/test_a.py::test_b"):
        mutant_runs.check_unchanged(BEARING, [], ledger)


def test_what_runs_on_import_and_what_no_test_calls_is_run_in_fresh_imports():
    names = [f"book.tables.{function}__mutmut_{n}" for n in (1, 2) for function in ("x_row", "x_cell", "x_alone")]
    jobs = mutant_runs.jobs_of(names, BEARING, [], mutant_children.Ledger("s", "t"))
    assert [(word, work.func.__name__) for word, work in jobs if isinstance(work, partial)] == [
        ("book.tables", "serve_imported"), ("called functions", "serve_called")]
    single, shared = (work.args for _, work in jobs if isinstance(work, partial))
    assert shared[0] == ["book.tables.x_cell__mutmut_1", "book.tables.x_cell__mutmut_2"]
    assert single[1] == [name for name in names if "x_cell" not in name]


def test_functions_are_shared_out_whole_and_quick_ones_come_first(monkeypatch):
    recorded = {"m.x_a": ["slow"], "m.x_b": ["quick"], "m.x_c": ["slow", "quick"]}
    bearing = Bearing(imported=[], loaded=[], dependents={}, sections=[], files={}, table_files=[], recorded=recorded,
                      seconds={"slow": 9.0, "quick": 0.1})
    names = [f"m.x_{letter}__mutmut_{n}" for n in (1, 2) for letter in "abc"]
    assert mutant_runs.shares(names, bearing) == [
        ["m.x_b__mutmut_1", "m.x_b__mutmut_2", "m.x_c__mutmut_1", "m.x_c__mutmut_2"], ["m.x_a__mutmut_1", "m.x_a__mutmut_2"]]
    monkeypatch.setattr(mutant_runs, "WORKERS", 9)
    assert len(mutant_runs.shares(names, bearing)) == 3


def test_a_digest_reads_sources_but_not_those_that_run_mutants(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("1")
    first = mutant_runs.digest(["tests"])
    (tmp_path / "tests" / "mutant_runs.py").write_text("2")
    assert mutant_runs.digest(["tests"]) == first
    (tmp_path / "tests" / "test_a.py").write_text("3")
    assert mutant_runs.digest(["tests"]) != first


def test_no_mutant_at_all_is_no_success(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["mutants", "--made", "book.*"])
    with pytest.raises(SystemExit) as stop:
        mutants.main()
    assert stop.value.code == 2
    assert "no mutant in mutants/ is named book.*; leave --made out to have them made" in capsys.readouterr().err


def test_only_a_survivor_that_is_not_listed_fails(monkeypatch, capsys, tmp_path):
    listed = tmp_path / "equivalent.txt"
    listed.write_text("# As good.\n\nm.x_f\n-a = 1\n+a = 2\n")
    found = [("m.x_f__mutmut_1", "a = 1", "a = 2"), ("m.x_f__mutmut_2", "a = 1", "a = 3")]
    monkeypatch.setattr(mutants, "EQUIVALENT", listed)
    monkeypatch.setattr(mutants, "made", lambda: iter(found))
    monkeypatch.setattr(sys, "argv", ["mutants", "--made"])
    for second, code, says in (("killed", 0, "equivalent: 1, killed: 1, wording: 0 of 2"),
                               ("survived", 1, "m.x_f\n-a = 1\n+a = 3\n\nequivalent: 1, not explained: 1, wording: 0 of 2")):
        results = {"m.x_f__mutmut_1": "survived", "m.x_f__mutmut_2": second}
        monkeypatch.setattr(mutants, "run_mutants", lambda *_, results=results: results)
        assert mutants.main() == code
        assert capsys.readouterr().out.strip() == says
