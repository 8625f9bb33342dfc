"""Runs single mutants in forked processes and keeps what became of each.

A function that only tests call is changed after the import: one session of pytest collects the tests, then forks a child
for each mutant, which runs the tests that call the function, those that killed its like first. A function that runs while
the packages are imported, or that no test is known to call, is changed before: a server for its module loads the modules
that the mutated one cannot reach, and a child for each mutant imports the rest and collects the tests that may bear on it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NoReturn

from tests.mutant_map import Bearing, function_of, module_of

KILLS = ("killed", "timeout", "crash")
RESULTS = "results.jsonl"
UNCHANGED = "none"
#: hypothesis is loaded before pytest could rewrite its asserts; that is not the mutant's doing.
IGNORED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
MEMORY = 8 << 30
#: Seconds of a test that may be run before all others, and of one that may be run at all once a function has changed.
QUICK, SLOWEST = 0.5, 1.0


class Chosen:
    """A plugin of pytest that keeps the tests that bear on a mutant, and tells which one failed.

    Those that killed a mutant before come first, then those of the module's own sections, each from quick to slow; the
    slowest are left out.
    """

    def __init__(self, bearing: Bearing, function: str, killers: Sequence[str], report: int) -> None:
        self.tests = set(bearing.own_tests(function))
        self.files = set(bearing.own_files(function.rpartition(".")[0]))
        self.sections = set(bearing.own_sections(function))
        module = function.rpartition(".")[0]
        self.near = {(t, s) for t, s, modules in bearing.sections if module in modules} & self.sections
        self.killers = killers
        self.seconds = bearing.seconds
        self.report = report

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        catalogue = importlib.import_module("constructions.catalogue").CATALOGUE
        places = {id(section): {(t, s)} for t, theorem in enumerate(catalogue)
                  for s, section in enumerate(theorem.sections)}
        places |= {id(theorem): {(t, s) for s in range(len(theorem.sections))} for t, theorem in enumerate(catalogue)}

        def sections(item: Any) -> set[tuple[int, int]]:
            """The sections that a test is about: its parameter's, or all of its parameter's theorem."""
            values = item.callspec.params.values() if hasattr(item, "callspec") else ()
            return min((places[id(value)] for value in values if id(value) in places), key=len, default=set())

        def is_chosen(item: Any) -> bool:
            return self.seconds.get(item.nodeid, 0.05) <= SLOWEST and (
                item.nodeid in self.tests or item.nodeid.split("::")[0] in self.files
                or bool(self.sections & sections(item)))

        def order(item: Any) -> tuple[bool, bool, float]:
            return item.nodeid not in self.killers, not self.near & sections(item), self.seconds.get(item.nodeid, 0.05)

        items[:] = sorted(filter(is_chosen, items), key=order)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._tell(report)

    def pytest_collectreport(self, report: Any) -> None:
        self._tell(report)

    def _tell(self, report: Any) -> None:
        if report.failed:
            os.write(self.report, f"{report.nodeid}\n".encode()[:500])


def files_of(bearing: Bearing, function: str) -> list[str]:
    """The test files to collect for a mutant of a function."""
    files = {test.split("::")[0] for test in bearing.own_tests(function)}
    files |= set(bearing.own_files(function.rpartition(".")[0]))
    if bearing.own_sections(function):
        files |= set(bearing.table_files)
    return sorted(file for file in files if Path(file).is_file())


def expected_seconds(bearing: Bearing, function: str) -> float:
    """How long all tests of the files of a function took, one after the other."""
    files = set(files_of(bearing, function))
    return sum(seconds for test, seconds in bearing.seconds.items() if test.split("::")[0] in files)


def confine(mutant: str, seconds: float) -> None:
    """Put a mutant in force in this process, silence it, and limit its time and memory, given the time of its tests."""
    os.environ["MUTANT_UNDER_TEST"] = mutant
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (int(20 + 5 * seconds), int(22 + 5 * seconds)))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.alarm(int(240 + 20 * seconds))


def run_imported(mutant: str, bearing: Bearing, options: Sequence[str], killers: Sequence[str], report: int) -> NoReturn:
    """Import what is missing with the mutant in force, run its tests, and end with pytest's exit code."""
    function = function_of(mutant)
    confine(mutant, expected_seconds(bearing, function))
    code = 5
    if files := files_of(bearing, function):
        pytest = importlib.import_module("pytest")
        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--rootdir=.", "--tb=native", *IGNORED, *options, *files],
                           plugins=[Chosen(bearing, function, killers, report)])
    os._exit(int(code))


def run_called(mutant: str, session: Any, items: Sequence[Any], seconds: float, report: int) -> NoReturn:
    """Run tests of a collected session with the mutant in force until one fails; end with 0, or 1 for a failure."""
    confine(mutant, seconds)
    session.config.pluginmanager.unregister(name="terminalreporter")
    for item, following in zip_longest(items, items[1:]):
        failed = True
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            failed = bool(session.testsfailed)
        finally:
            if failed:
                os.write(report, f"{item.nodeid}\n".encode()[:500])
                os._exit(1)
    os._exit(0 if items else 5)


def result_of(status: int) -> str:
    """What a child's wait status says of its mutant."""
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL) else "crash"
    return {0: "survived", 5: "no tests"}.get(os.WEXITSTATUS(status), "killed")


def outcome(run: Callable[[int], NoReturn]) -> tuple[str, str]:
    """Run something in a child, and return what became of its mutant and the test that the child says failed."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        run(write)
    os.close(write)
    status = os.waitpid(child, 0)[1]
    os.set_blocking(read, False)  # what the child has started may live on and hold its end
    with os.fdopen(read, "rb") as told:
        by = (told.read() or b"").decode(errors="replace").split("\n")[0]
    return result_of(status), by


@dataclass(frozen=True)
class Ledger:
    """The file of the results; a line names what it rests on, by one of two keys.

    Attributes:
        kill: the key of a kill.
        survival: the key of a survival.
    """

    kill: str
    survival: str

    def add(self, mutant: str, result: str, by: str, start: float) -> None:
        """Write what became of a mutant."""
        line = {"mutant": mutant, "result": result, "by": by, "seconds": round(time.monotonic() - start, 2),
                "of": self.kill if result in KILLS else self.survival}
        with Path(RESULTS).open("a") as file:
            file.write(json.dumps(line) + "\n")

    def known(self) -> dict[str, str]:
        """What still holds: a kill as long as the sources are the same, a survival as long as the tests are too."""
        if not Path(RESULTS).is_file():
            return {}
        lines = [json.loads(line) for line in Path(RESULTS).read_text().splitlines()]
        return {line["mutant"]: line["result"] for line in lines
                if line["of"] == (self.kill if line["result"] in KILLS else self.survival)}


def serve_imported(module: str, mutants: Sequence[str], bearing: Bearing, options: Sequence[str], ledger: Ledger) -> None:
    """Run mutants of one module that must be in force while it is imported."""
    os.environ["MUTANT_UNDER_TEST"] = UNCHANGED
    for name in bearing.independent(module):
        importlib.import_module(name)
    killers: list[str] = []
    for mutant in mutants:
        start = time.monotonic()
        result, by = outcome(partial(run_imported, mutant, bearing, options, killers))
        killers = list(dict.fromkeys([by, *killers]))[:5]
        if result == "killed" and not by:
            raise RuntimeError(f"{mutant}: pytest failed, and no test did")
        ledger.add(mutant, result, by, start)


class Forks:
    """A plugin of pytest that runs no test itself: for each mutant, a child of the session runs the tests of its function.

    The quick tests that last killed mutants of the same function come first, then those that killed others of its module,
    then the rest from quick to slow. The tool records how long a test took without its fixtures; how long it takes with
    them shows when it comes first. The slowest tests are left out: what they alone would kill is taken to survive.
    """

    def __init__(self, mutants: Sequence[str], bearing: Bearing, ledger: Ledger) -> None:
        self.mutants = mutants
        self.bearing = bearing
        self.ledger = ledger

    def pytest_runtestloop(self, session: Any) -> bool:
        items = {item.nodeid: item for item in session.items}
        seconds = {name: self.bearing.seconds.get(name, 0.05) for name in items}
        left_out = {name for name in items if seconds[name] > SLOWEST}
        killers: dict[str, list[str]] = defaultdict(list)
        gc.collect()
        gc.freeze()
        for mutant in self.mutants:
            start = time.monotonic()
            function, module = function_of(mutant), module_of(mutant)
            own = sorted(set(self.bearing.recorded[function]) & items.keys() - left_out, key=seconds.__getitem__)
            first = [name for name in killers[function] + killers[module] if name in own and seconds[name] <= QUICK]
            tests = list(dict.fromkeys(first + own))
            result, by = outcome(partial(run_called, mutant, session, [items[name] for name in tests],
                                         sum(map(seconds.__getitem__, tests))))
            if by and by == tests[0]:
                seconds[by] = max(seconds[by], time.monotonic() - start)
            for place in (function, module) if by else ():
                killers[place] = list(dict.fromkeys([by, *killers[place]]))[:5]
            self.ledger.add(mutant, result, by, start)
        return True


def serve_called(mutants: Sequence[str], bearing: Bearing, options: Sequence[str], ledger: Ledger) -> None:
    """Run mutants of functions that only tests call."""
    os.environ["MUTANT_UNDER_TEST"] = UNCHANGED
    tests = {test for mutant in mutants for test in bearing.recorded[function_of(mutant)]}
    files = sorted(file for file in {test.split("::")[0] for test in tests} if Path(file).is_file())
    code = importlib.import_module("pytest").main(
        ["-q", "-p", "no:cacheprovider", "--rootdir=.", "--tb=native", *IGNORED, *options, *files],
        plugins=[Forks(mutants, bearing, ledger)])
    if code:
        raise RuntimeError(f"pytest ended with {code} where no test should run")
