"""The second pass over the mutants: what is wording, which tests bear on a function, what a child's end means."""

import os
import signal

import pytest

from tests import mutant_runs
from tests.mutant_map import Bearing, function_of, homes, module_of
from tests.mutants import change, is_wording, sources

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
    assert mutant_runs.files_of(BEARING, "book.tables.x_row") == [
        "tests/test_cell.py", "tests/test_sections.py", "tests/test_tables.py"]
    assert mutant_runs.files_of(BEARING, "book.tables.x_cell") == ["tests/test_cell.py", "tests/test_tables.py"]
    assert mutant_runs.expected_seconds(BEARING, "book.tables.x_cell") == 3.0


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
    assert mutant_runs.result_of(os.waitpid(child, 0)[1]) == result


def test_a_result_holds_as_long_as_what_it_rests_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert mutant_runs.known_results(("s1", "t1")) == {}
    (tmp_path / mutant_runs.RESULTS).write_text(
        '{"mutant": "a", "result": "killed", "of": "s1"}\n{"mutant": "b", "result": "survived", "of": "t1"}\n'
        '{"mutant": "c", "result": "timeout", "of": "s0"}\n{"mutant": "d", "result": "no tests", "of": "t0"}\n')
    assert mutant_runs.known_results(("s1", "t1")) == {"a": "killed", "b": "survived"}
    assert mutant_runs.known_results(("s1", "t2")) == {"a": "killed"}


def test_a_digest_reads_sources_but_not_those_that_run_mutants(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("1")
    first = mutant_runs.digest(["tests"])
    (tmp_path / "tests" / "mutant_runs.py").write_text("2")
    assert mutant_runs.digest(["tests"]) == first
    (tmp_path / "tests" / "test_a.py").write_text("3")
    assert mutant_runs.digest(["tests"]) != first
