"""The commands behind the options: each reads its input, calls the library and prints; each returns the exit code."""

from __future__ import annotations

import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from difflib import get_close_matches

import numpy as np

from iha_theory import report
from iha_theory.book import Book, Builder, with_positions
from iha_theory.claims import Evidence, Means, Request, Section, Theorem, Verdict
from iha_theory.display import as_markdown, as_text
from iha_theory.files import suggestion
from iha_theory.graphs import Graph, load_features, load_graph, load_matrix
from iha_theory.layer import forward
from iha_theory.scalars import to_float
from iha_theory.verification import build as build_instance
from iha_theory.verification import claims_of, is_sound, jobs_of, judge_case, judge_job, select, verify_in_parallel
from iha_theory.weights_file import check_writable, load_weights, save_weights, write_whole

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


def _at_least_one(options: Namespace, *names: str) -> tuple[str, ...]:
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
    _at_least_one(options, "k", "n", "modulus", "coefficient", "pseudo_heads")
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
    printed = sum(row.expect is Verdict.FAILS for row in rows)
    print(f"{len(rows)} verdicts: {len(rows) - len(failed)} as expected, {len(failed)} not; "
          f"{printed} of them are printed statements that fail with a witness.")
    if options.json is not None:
        write_whole(options.json, report.as_json(rows).encode())
    return 0 if is_sound(rows) else 1


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
        for theorem in theorems:
            for section in theorem.sections:
                if section.errata:
                    alone = Section(section.title, section.instance, section.cases, (), section.errata)
                    for case in section.cases:
                        progress.now(f"{report.heading(theorem.number)}, {case.name}")
                        rows += judge_case(theorem, alone, case)
    for line in report.errata(rows, theorems):
        print(line)
    return 0 if is_sound(rows) else 1


def claims(load: Load, options: Namespace) -> int:
    """Print every claim."""
    for line in report.claims(select(load().theorems, options.theorems)):
        print(line)
    return 0


def show(load: Load, options: Namespace) -> int:
    """Print a worked example, or both sides of a claim on its smallest case."""
    book = load()
    if options.name in book.examples:
        example = book.examples[options.name]()
        print(as_markdown(example) if options.format == "markdown" else as_text(example), end="")
        return 0
    sides = {f"{key}/{claim.id}": (section, claim) for theorem in book.theorems for key in theorem.keys
             for section in theorem.sections for claim, _ in claims_of(section)}
    if options.name not in sides:
        near = get_close_matches(options.name, [*book.examples, *sides], n=5) or list(book.examples)
        raise ValueError(f"unknown example or claim {options.name!r}; near it are {', '.join(near)}; iha-theory claims lists "
                         "all")
    section, claim = sides[options.name]
    for case in section.cases:
        instance = build_instance(section, case)
        if claim.applies(instance):
            print(f"{options.name}: {claim.says}\n{case.name}\n")
            for name, side in (("left", claim.left(instance)), ("right", claim.right(instance))):
                print(f"{name} side of '{claim.relation.value}':")
                print(np.array2string(side, threshold=200, max_line_width=110,
                                      formatter={"object": str}) if isinstance(side, np.ndarray) else side)
                print()
            return 0
    raise ValueError(f"{options.name}: has no case that can be shown")


def build(load: Load, options: Namespace) -> int:
    """Write the weights of a construction."""
    builders = load().builders
    if options.construction not in builders:
        raise ValueError(f"unknown construction {options.construction!r}; {suggestion(options.construction, builders)}")
    builder = builders[options.construction]
    check_writable(options.out, options.graph)
    built = builder.make(**_chosen(options, builder))
    about = {"construction": options.construction, "attention": built.attention, "positions": str(built.positions),
             "columns": str(built.columns)}
    save_weights(options.out, built.weights, about)
    sizes = ", ".join(f"{axis}={size}" for axis, size in built.weights.sizes.items())
    print(f"{options.out}: {options.construction}, {built.attention} attention, {sizes}")
    return 0


def _chosen(options: Namespace, builder: Builder) -> dict[str, object]:
    given: dict[str, object] = {"graph": graph_of(options)}
    given |= {name: getattr(options, name) for name in _at_least_one(options, "k", "d", "n", "pseudo_heads")}
    given = {name: value for name, value in given.items() if value is not None}
    for name in builder.required:
        if name not in given:
            raise ValueError(f"{options.construction} needs --{name.replace('_', '-')}")
    for name in given:
        if name not in (*builder.required, *builder.optional):
            raise ValueError(f"{options.construction} takes no --{name.replace('_', '-')}")
    return given


def run(load: Load, options: Namespace) -> int:
    """Run a weights file on an input, in float64, and print or write the output."""
    weights, about = load_weights(options.file)
    book = load()
    if about.get("attention") not in book.attentions:
        raise ValueError(f"{options.file}: attention {about.get('attention')!r}; wanted {', '.join(book.attentions)}")
    if options.out is not None:
        check_writable(options.out, options.file, options.input)
        if not options.out.endswith((".csv", ".npy")):
            raise ValueError(f"{options.out}: unknown suffix; wanted .csv or .npy")
    positions, columns = (_count(options.file, about, name) for name in ("positions", "columns"))
    x = with_positions(to_float(load_matrix(options.input)), positions)
    with np.errstate(all="ignore"):
        output = forward(weights, x, book.attentions[about["attention"]])[:, :columns]
    if not np.isfinite(output).all():
        raise ValueError(f"{options.input}: the output leaves the doubles; give smaller numbers")
    text = "\n".join(",".join(repr(float(value)) for value in row) for row in output) + "\n"
    if options.out is None:
        print(text, end="")
    elif options.out.endswith(".csv"):
        write_whole(options.out, text.encode())
    else:
        from io import BytesIO

        stream = BytesIO()
        np.save(stream, output, allow_pickle=False)
        write_whole(options.out, stream.getvalue())
    return 0


def _count(path: str, about: dict[str, str], name: str) -> int:
    text = about.get(name, "")
    if not text.isdigit():
        raise ValueError(f"{path}: {name} is {text!r}, wanted a number; give a file written by build")
    return int(text)


