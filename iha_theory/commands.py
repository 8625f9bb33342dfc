"""The commands behind the options: each reads its input, calls the library and prints; each returns the exit code."""

from __future__ import annotations

import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from difflib import get_close_matches

from iha_theory import report
from iha_theory.book import Book
from iha_theory.claims import Evidence, Means, Request, Theorem, Verdict
from iha_theory.display import as_markdown, as_text
from iha_theory.graphs import Graph, load_features, load_graph
from iha_theory.verification import build as build_instance
from iha_theory.verification import (
    claims_of,
    errata_cases,
    is_sound,
    jobs_of,
    judge_case,
    judge_job,
    select,
    verify_in_parallel,
)
from iha_theory.weights_file import check_writable, write_whole

Load = Callable[[], Book]
_QUIET_SECONDS = 2.0


class Progress:
    """What is being done, on stderr, every two seconds that it lasts; silent for quick work."""

    def __init__(self) -> None:
        self._text = ""
        self._done = threading.Event()
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def now(self, text: str) -> None:
        """Say what is done now."""
        self._text = text

    def _tell(self) -> None:
        while not self._done.wait(_QUIET_SECONDS):
            print(f"... {self._text} ({time.monotonic() - self._started:.0f} s)", file=sys.stderr, flush=True)


def graph_of(options: Namespace) -> Graph | None:
    """The graph that the options ask for; None without --graph."""
    if options.graph is None:
        for name in ("normalize", "orientation", "weight", "features"):
            if getattr(options, name, None) is not None:
                raise ValueError(f"--{name} belongs to a graph; give --graph, too")
        return None
    return load_graph(
        options.graph,
        orientation=options.orientation or "source-reads-target",
        weight=options.weight or "weight",
        normalize=options.normalize or "none",
    )


def at_least_one(options: Namespace, *names: str) -> tuple[str, ...]:
    """The names; ValueError if one of these options was given a number below 1."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name.replace('_', '-')}: got {value}, wanted at least 1")
    return names


def _request(options: Namespace) -> Request | None:
    graph = graph_of(options)
    features = None
    if options.features is not None and graph is not None:
        features = load_features(options.features, len(graph.nodes))
    at_least_one(options, "k", "n", "modulus", "coefficient", "pseudo_heads")
    request = Request(graph=graph, features=features, k=options.k, pseudo_heads=options.pseudo_heads, n=options.n,
                      modulus=options.modulus, coefficient=options.coefficient,
                      means=Means[options.means.upper()] if options.means else None)
    return request if request.given() or request.means else None


def verify(load: Load, options: Namespace) -> int:
    """Judge the claims and print the table and its coverage; 1 if a verdict is not the expected one."""
    if options.jobs < 1:
        raise ValueError(f"--jobs: got {options.jobs}, wanted at least 1")
    if options.json is not None:
        check_writable(options.json, options.graph, options.features)
    if options.device is not None or options.dtype is not None:
        return _verify_on_device(load, options)
    request = _request(options)
    theorems = select(load().theorems, options.theorems)
    if request is not None:
        theorems = theorems if options.theorems else _serving(theorems, request)
        if request.graph is not None:
            print(request.graph.describe())
    rows: list[Evidence] = []
    for line in report.table(_rows(load, options, theorems, request, rows), theorems):
        print(line, flush=True)
    print()
    for line in report.coverage(rows, theorems):
        print(line)
    print(f"\n{report.LEGEND}\n")
    failed = [row for row in rows if not row.is_expected]
    refuted = [row for row in rows if row.expect is Verdict.FAILS]
    print(f"{len(rows)} verdicts: {len(rows) - len(failed)} as expected, {len(failed)} not; {len(refuted)} of them refute, "
          f"with a witness, {len({(row.theorem, row.claim) for row in refuted})} statements as they are printed.")
    if options.json is not None:
        write_whole(options.json, report.as_json(rows).encode())
    return 0 if is_sound(rows) else 1


def _verify_on_device(load: Load, options: Namespace) -> int:
    """Theorems 3 and 4 in floating point on a device; 1 if an error leaves its bound."""
    if options.device is None:
        raise ValueError("--dtype belongs to a device; give --device, too")
    for name in ("graph", "features", "k", "n", "modulus", "coefficient", "pseudo_heads", "means", "json"):
        if getattr(options, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')}: --device runs instances of its own; leave it out")
    numbers = tuple(theorem.split()[0] for theorem in options.theorems)
    for number in numbers:
        if number not in ("3", "4"):
            raise ValueError(f"theorem {number}: --device runs Theorems 3 and 4")
    try:
        from iha_theory.torch_device import outcome
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ValueError("--device needs torch; pip install 'iha-theory[torch]'") from error
    cases, dtype = load().device_cases, options.dtype or "float32"
    if cases is None:
        raise ValueError("--device: this book has no instances for a device")
    chosen = [case for case in cases(dtype) if not numbers or case.name.removeprefix("Theorem ")[0] in numbers]
    stored, tf32 = ("float32", True) if dtype == "tf32" else (dtype, False)
    rows = [outcome(case, options.device, stored, tf32=tf32) for case in chosen]
    for row in rows:
        print(f"{'agrees' if row.is_within else 'FAILS':<7} {row.case:<58} {row.device} {row.dtype:<14} "
              f"error {row.error:.2e}, bound {row.bound:.2e}")
    failed = sum(not row.is_within for row in rows)
    print(f"\n{len(rows)} instances: {len(rows) - failed} within the computed bound, {failed} not.")
    return 1 if failed else 0


def _serving(theorems: tuple[Theorem, ...], request: Request) -> tuple[Theorem, ...]:
    """The theorems that have a case for these options.

    Raises:
        ValueError: none has; the message is that of the first theorem that refused a value, if any did.
    """
    serving, refusals = [], []
    for theorem in theorems:
        try:
            if any(section.requested and section.requested(request) for section in theorem.sections):
                serving.append(theorem)
        except ValueError as refusal:
            refusals.append(refusal)
    if not serving and refusals:
        raise refusals[0]
    return tuple(serving) or theorems


def _rows(load: Load, options: Namespace, theorems: tuple[Theorem, ...], request: Request | None,
          rows: list[Evidence]) -> Iterator[Evidence]:
    """The evidence, with progress; each row is also appended to ``rows``."""
    with Progress() as progress:
        if options.jobs > 1:
            progress.now("verifying on several processes")
            keys = [theorem.key for theorem in theorems]
            for row in verify_in_parallel(_Theorems(load), keys, request, options.jobs):
                rows.append(row)
                progress.now(f"Theorem {row.theorem}, {row.case}")
                yield row
            return
        jobs = jobs_of(theorems, request)
        for number, job in enumerate(jobs, start=1):
            heading = report.heading(theorems[job.theorem].number)
            progress.now(f"case {number} of {len(jobs)}: {heading}, {job.name}")
            for row in judge_job(theorems, job):
                rows.append(row)
                yield row


class _Theorems:
    """The catalogue of a book, as a function that a worker process can be sent."""

    def __init__(self, load: Load) -> None:
        self._load = load

    def __call__(self) -> tuple[Theorem, ...]:
        return self._load().theorems


def errata(load: Load, options: Namespace) -> int:
    """Print every erratum with its evidence; 1 if one does not show what is expected."""
    theorems = select(load().theorems, options.theorems)
    rows: list[Evidence] = []
    with Progress() as progress:
        for theorem, section, case in errata_cases(theorems):
            progress.now(f"{report.heading(theorem.number)}, {case.name}")
            rows += judge_case(theorem, section, case)
    for line in report.errata(rows, theorems):
        print(line)
    return 0 if is_sound(rows) else 1


def claims(load: Load, options: Namespace) -> int:
    """Print every claim."""
    for line in report.claims(select(load().theorems, options.theorems)):
        print(line)
    return 0


def show(load: Load, options: Namespace) -> int:
    """Print a worked example, or both sides of a claim on its first case and the verdict; 1 if it disappoints."""
    book = load()
    if options.name in book.examples:
        example = book.examples[options.name]()
        print(as_markdown(example) if options.format == "markdown" else as_text(example), end="")
        return 0
    claims = {f"{key}/{claim.id}": (theorem, section, claim) for theorem in book.theorems for key in theorem.keys
              for section in theorem.sections for claim, _ in claims_of(section)}
    if options.name not in claims:
        near = get_close_matches(options.name, [*book.examples, *claims], n=5) or list(book.examples)
        raise ValueError(f"unknown example or claim {options.name!r}; near it are {', '.join(near)}; iha-theory claims lists "
                         "all")
    theorem, section, claim = claims[options.name]
    for case in section.cases:
        instance = build_instance(section, case)
        if claim.applies(instance):
            (row,) = judge_case(theorem, replace(section, claims=(claim,), errata=()), case)
            for line in report.sides(options.name, claim, claim.left(instance), claim.right(instance), row):
                print(line)
            return 0 if row.is_expected else 1
    raise ValueError(f"{options.name}: has no case that can be shown")
