"""Runs mutants in processes that import the packages with the change in force, and keeps what became of each.

A server process for each module loads foreign libraries and the modules that the mutated one cannot reach, then forks a
child for each mutant. Two servers work at a time. Every result is a line of a file in the folder of the mutants.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
import tomllib
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from tests.mutant_map import PACKAGES, Bearing, function_of, module_of

FOREIGN = ("numpy", "sympy", "sympy.polys.rings", "flint", "networkx", "scipy", "scipy.sparse", "scipy.optimize", "einops",
           "pytest", "hypothesis", "hypothesis.strategies", "hypothesis.extra.numpy", "mutmut.mutation.trampoline")
KILLS = ("killed", "timeout", "crash")
RESULTS = "second-pass.jsonl"
#: hypothesis is loaded before pytest could rewrite its asserts; that is not the mutant's doing.
IGNORED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
WORKERS, CHUNK, MEMORY = 2, 40, 8 << 30


class Chosen:
    """A plugin of pytest that keeps the tests that bear on a mutant, and tells which one failed.

    Those that killed a mutant before come first, then those of the module's own sections, each from quick to slow.
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
            return item.nodeid in self.tests or item.nodeid.split("::")[0] in self.files or bool(
                self.sections & sections(item))

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


def run_child(mutant: str, bearing: Bearing, options: Sequence[str], killers: Sequence[str], report: int) -> NoReturn:
    """Import what is missing with the mutant in force, run its tests, and end with pytest's exit code."""
    function = function_of(mutant)
    seconds = expected_seconds(bearing, function)
    os.environ["MUTANT_UNDER_TEST"] = mutant
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (int(20 + 4 * seconds), int(22 + 4 * seconds)))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.alarm(int(120 + 20 * seconds))
    code = 5
    if files := files_of(bearing, function):
        pytest = importlib.import_module("pytest")
        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--rootdir=.", "--tb=native", *IGNORED, *options, *files],
                           plugins=[Chosen(bearing, function, killers, report)])
    os._exit(int(code))


def result_of(status: int) -> str:
    """What a child's wait status says of its mutant."""
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL) else "crash"
    return {0: "survived", 5: "no tests"}.get(os.WEXITSTATUS(status), "killed")


def serve(module: str, mutants: Sequence[tuple[str, str, str]], bearing: Bearing, options: Sequence[str]) -> None:
    """Run mutants of one module, each with its keys (for a kill, for a survival), and write a line for each."""
    os.environ["MUTANT_UNDER_TEST"] = "none"
    for name in bearing.independent(module):
        importlib.import_module(name)
    lines = os.open(RESULTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    killers: list[str] = []
    for mutant, killed_key, survived_key in mutants:
        start = time.monotonic()
        read, write = os.pipe()
        child = os.fork()
        if not child:
            run_child(mutant, bearing, options, killers, write)
        os.close(write)
        with os.fdopen(read, "rb") as told:
            by = told.read().decode(errors="replace").split("\n")[0]
        result = result_of(os.waitpid(child, 0)[1])
        killers = list(dict.fromkeys([by, *killers]))[:5]
        if result == "killed" and not by:
            raise RuntimeError(f"{mutant}: pytest failed, and no test did")
        line = {"mutant": mutant, "result": result, "by": by, "seconds": round(time.monotonic() - start, 2),
                "of": killed_key if result in KILLS else survived_key}
        os.write(lines, (json.dumps(line) + "\n").encode())


def digest(folders: Iterable[str]) -> str:
    """A digest of the sources in some folders, but for those that run mutants."""
    found = hashlib.sha256()
    paths = (path for folder in folders for path in Path(folder).glob("*.py"))
    for path in sorted(path for path in paths if not path.stem.startswith("mutant")):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()[:16]


def known_results(keys: tuple[str, str]) -> dict[str, str]:
    """The results that still hold: a kill as long as the sources, a survival as long as sources and tests are the same."""
    if not Path(RESULTS).is_file():
        return {}
    lines = [json.loads(line) for line in Path(RESULTS).read_text().splitlines()]
    return {line["mutant"]: line["result"] for line in lines
            if line["of"] == keys[0 if line["result"] in KILLS else 1]}


def load_bearing() -> Bearing:
    """The map of the tests, from a process of its own, with what the tool recorded."""
    run = subprocess.run([sys.executable, "-m", "tests.mutant_map"], capture_output=True, text=True, check=True)
    stats = json.loads(Path("mutmut-stats.json").read_text())
    return Bearing(**json.loads(run.stdout.splitlines()[-1]), recorded=stats["tests_by_mangled_function_name"],
                   seconds=stats["duration_by_test"])


def second_pass(folder: Path, mutants: Sequence[str]) -> dict[str, str]:
    """Run mutants and return what became of each: killed, timeout, survived or no tests.

    Progress goes to stderr. Broken off and called again, it goes on where it was.
    """
    here = Path.cwd()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    options = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["mutmut"]["pytest_add_cli_args"]
    os.chdir(folder)
    try:
        for name in FOREIGN:
            importlib.import_module(name)
        for name in [name for name in sys.modules if name.split(".")[0] in (*PACKAGES, "tests")]:
            del sys.modules[name]
        sys.path[:] = [str(Path.cwd()), *(entry for entry in sys.path if Path(entry or ".").resolve() != here)]
        os.environ["PYTHONPATH"] = str(Path.cwd())
        keys = (digest(PACKAGES), digest((*PACKAGES, "tests")))
        results = known_results(keys)
        waiting: dict[str, list[str]] = {}
        for mutant in mutants:
            if mutant not in results:
                waiting.setdefault(module_of(mutant), []).append(mutant)
        chunks = [(module, names[i : i + CHUNK]) for module, names in waiting.items() for i in range(0, len(names), CHUNK)]
        if chunks:
            _serve_all(chunks, load_bearing(), options, keys, len(mutants))
        return known_results(keys)
    finally:
        os.chdir(here)


def _end_after(work: Callable[[], None]) -> NoReturn:
    """Do something in a forked process, in a group of its own and behind all others, and end the process."""
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.nice(10)
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _serve_all(chunks: list[tuple[str, list[str]]], bearing: Bearing, options: Sequence[str], keys: tuple[str, str],
               total: int) -> None:
    servers: dict[int, str] = {}
    shown = 0.0
    try:
        while chunks or servers:
            while chunks and len(servers) < WORKERS:
                module, names = chunks.pop(0)
                server = os.fork()
                if not server:
                    _end_after(partial(serve, module, [(name, *keys) for name in names], bearing, options))
                servers[server] = module
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended:
                if status:
                    raise RuntimeError(f"the server of the mutants of {servers[ended]} ended with {status}")
                del servers[ended]
                continue
            time.sleep(0.2)
            if time.monotonic() - shown > 10:
                shown, found = time.monotonic(), list(known_results(keys).values())
                print(f"... {len(found)} of {total}: {sum(map(found.count, KILLS))} killed; now "
                      f"{', '.join(sorted(set(servers.values())))}", file=sys.stderr, flush=True)
    finally:
        for server in servers:
            os.killpg(server, signal.SIGKILL)
