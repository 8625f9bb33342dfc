"""Runs all mutants, two processes at a time, each of which forks children; tests/mutant_children.py is what they do.

Every result is a line of a file in the folder of the mutants, so that a run may be broken off and taken up again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

from tests.mutant_children import KILLS, RESULTS, Ledger, serve_called, serve_imported
from tests.mutant_map import PACKAGES, Bearing, function_of, module_of

FOREIGN = ("numpy", "sympy", "sympy.polys.rings", "flint", "networkx", "scipy", "scipy.sparse", "scipy.optimize", "einops",
           "pytest", "hypothesis", "hypothesis.strategies", "hypothesis.extra.numpy", "mutmut.mutation.trampoline")
WORKERS, CHUNK = 2, 40
WHOLE = "unchanged.x__mutmut_0"

Job = tuple[str, Callable[[], None]]


def digest(folders: Iterable[str]) -> str:
    """A digest of the sources in some folders, but for those that run mutants."""
    found = hashlib.sha256()
    paths = (path for folder in folders for path in Path(folder).glob("*.py"))
    for path in sorted(path for path in paths if not path.stem.startswith("mutant")):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()[:16]


def load_bearing() -> Bearing:
    """The map of the tests, from a process of its own, with what the tool recorded."""
    run = subprocess.run([sys.executable, "-m", "tests.mutant_map"], capture_output=True, text=True, check=True)
    stats = json.loads(Path("mutmut-stats.json").read_text())
    return Bearing(**json.loads(run.stdout.splitlines()[-1]), recorded=stats["tests_by_mangled_function_name"],
                   seconds=stats["duration_by_test"])


def shares(mutants: Iterable[str], bearing: Bearing) -> list[list[str]]:
    """Mutants of functions that tests call, in one share for each worker, whole functions together, quick ones first."""
    of: dict[str, list[str]] = {}
    for mutant in mutants:
        of.setdefault(function_of(mutant), []).append(mutant)

    def cost(function: str) -> float:
        return sum(bearing.seconds.get(test, 0.05) for test in bearing.recorded[function])

    found: list[list[str]] = [[] for _ in range(WORKERS)]
    for function in sorted(of, key=cost):
        min(found, key=len).extend(of[function])
    return [share for share in found if share]


def jobs_of(mutants: Iterable[str], bearing: Bearing, options: Sequence[str], ledger: Ledger) -> list[Job]:
    """What there is to do, each with a word for it: every module's imported functions, then the shares of the called ones."""
    called: list[str] = []
    imported: dict[str, list[str]] = {}
    for mutant in mutants:
        function = function_of(mutant)
        if function in bearing.imported or not bearing.recorded.get(function):
            imported.setdefault(module_of(mutant), []).append(mutant)
        else:
            called.append(mutant)
    jobs: list[Job] = [(module, partial(serve_imported, module, names[i : i + CHUNK], bearing, options, ledger))
                       for module, names in imported.items() for i in range(0, len(names), CHUNK)]
    return jobs + [("called functions", partial(serve_called, share, bearing, options, ledger))
                   for share in shares(called, bearing)]


def check_unchanged(bearing: Bearing, options: Sequence[str], ledger: Ledger) -> None:
    """Run every recorded test as the children do, without a change; whatever failed here would kill every mutant."""
    whole = dataclasses.replace(bearing, recorded={function_of(WHOLE): sorted(bearing.seconds)})
    serve_called([WHOLE], whole, options, ledger)
    line = json.loads(Path(RESULTS).read_text().splitlines()[-1])
    if line["result"] != "survived":
        raise RuntimeError(f"without any change, the tests end with {line['result']} {line['by']}")


def run_mutants(folder: Path, mutants: Sequence[str]) -> dict[str, str]:
    """Run mutants and return what became of each: killed, timeout, crash, survived or no tests.

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
        ledger = Ledger(digest(PACKAGES), digest((*PACKAGES, "tests")))
        known = ledger.known()
        waiting = [mutant for mutant in mutants if mutant not in known]
        if waiting:
            bearing = load_bearing()
            if known.get(WHOLE) != "survived":
                _work([("all tests, without a change", partial(check_unchanged, bearing, options, ledger))], ledger, 0)
            _work(jobs_of(waiting, bearing, options, ledger), ledger, len(mutants))
        return ledger.known()
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


def _work(jobs: list[Job], ledger: Ledger, total: int) -> None:
    """Do all jobs, some at a time, and show how far they are."""
    servers: dict[int, str] = {}
    shown = 0.0
    try:
        while jobs or servers:
            while jobs and len(servers) < WORKERS:
                word, work = jobs.pop(0)
                server = os.fork()
                if not server:
                    _end_after(work)
                servers[server] = word
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended:
                with suppress(ProcessLookupError):
                    os.killpg(ended, signal.SIGKILL)
                if status:
                    raise RuntimeError(f"the process for {servers.pop(ended)} ended with {status}")
                del servers[ended]
                continue
            time.sleep(0.2)
            if time.monotonic() - shown > 10:
                shown, found = time.monotonic(), list(ledger.known().values())
                print(f"... {len(found)} of {total}: {sum(map(found.count, KILLS))} killed; now "
                      f"{', '.join(sorted(set(servers.values())))}", file=sys.stderr, flush=True)
    finally:
        for server in servers:
            os.killpg(server, signal.SIGKILL)
