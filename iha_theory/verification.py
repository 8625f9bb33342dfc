"""From a catalogue of theorems to rows of evidence. Every reader (command line, tests, tables) goes through here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from iha_theory.claims import (
    Case,
    Claim,
    Evidence,
    Means,
    Request,
    Scope,
    Section,
    Theorem,
    Verdict,
)
from iha_theory.comparison import Outcome, compare
from iha_theory.proofs import is_accepted
from iha_theory.scalars import BALLS, FLOATS, POLYNOMIALS, RESIDUES, Domain


class Job(NamedTuple):
    """One case of one section of one theorem, by position, so that a worker process can find it.

    Without a case it stands for the theorem's machine-checked proofs.
    """

    theorem: int
    section: int
    case: Case | None

    @property
    def name(self) -> str:
        """The case's name, for progress."""
        return "machine-checked proofs" if self.case is None else self.case.name


def means_of(domain: Domain) -> Means:
    """By what means a verdict over this domain is known."""
    return {FLOATS: Means.FLOAT, BALLS: Means.BALL, RESIDUES: Means.RESIDUE}.get(domain, Means.EXACT)


def build(section: Section, case: Case, prime: int | None = None) -> Any:
    """The instance of a case, with its premises checked.

    Args:
        prime: over residues, the prime to build it modulo; None takes the first of the case's primes.

    Raises:
        ValueError: a premise is broken; the message is the premise's sentence.
    """
    parameters = {name: value for name, value in case.parameters.items() if name != "primes"}
    if "primes" in case.parameters:
        parameters["prime"] = prime or case.parameters["primes"][0]
    instance = section.instance(domain=case.domain, **parameters)
    for premise in section.premises:
        if not premise.is_met(instance):
            raise ValueError(f"{case.name}: a premise is broken: {premise.says}")
    return instance


def claims_of(section: Section) -> Iterator[tuple[Claim, str]]:
    """Every claim of a section with the erratum it belongs to ("" for none), errata last."""
    for claim in section.claims:
        yield claim, ""
    for erratum in section.errata:
        for claim in (erratum.printed, *erratum.corrected):
            yield claim, erratum.id


def errata_cases(catalogue: Iterable[Theorem]) -> Iterator[tuple[Theorem, Section, Case]]:
    """Every case that an erratum is judged on, with its section without the other claims: for :func:`judge_case`."""
    for theorem in catalogue:
        for section in theorem.sections:
            if section.errata:
                yield from ((theorem, replace(section, claims=()), case) for case in section.cases)


def judge(claim: Claim, case: Case, instance: Any) -> Outcome:
    """Evaluate both sides of a claim on an instance and compare them."""
    domain = claim.domain or case.domain
    bound = claim.bound(instance) if claim.bound and domain is FLOATS else None
    return compare(claim.relation, claim.left(instance), claim.right(instance), domain, bound)


def judge_case(theorem: Theorem, section: Section, case: Case) -> list[Evidence]:
    """The evidence of one case: one row for each claim that speaks of it.

    A case over residues is built once for each of its primes. One prime refutes an equality; that all agree is
    evidence with an error probability, the product of the instances' ``error_probability``.
    """
    found: dict[str, tuple[Claim, str, list[Outcome]]] = {}
    error = Fraction(1)
    for prime in case.parameters.get("primes", (None,)):
        instance = build(section, case, prime)
        if prime is not None:
            error *= instance.error_probability
        for claim, erratum in claims_of(section):
            if claim.applies(instance):
                found.setdefault(claim.id, (claim, erratum, []))[2].append(judge(claim, case, instance))
    return [_evidence(theorem, claim, case, outcomes, erratum, error) for claim, erratum, outcomes in found.values()]


def _evidence(theorem: Theorem, claim: Claim, case: Case, outcomes: list[Outcome], erratum: str,
              error: Fraction) -> Evidence:
    domain = claim.domain or case.domain
    shown = next((outcome for outcome in outcomes if outcome.witness is not None), outcomes[0])
    remark, means = shown.remark, means_of(domain)
    if domain is RESIDUES:
        if shown.witness is not None:
            means = Means.EXACT
        else:
            remark = f"error probability at most {rounded_up(error)}, {len(outcomes)} primes"
    scope = case.scope if claim.scope is None else claim.scope
    if domain is POLYNOMIALS and shown.witness is not None and scope is not Scope.ALL:
        # Two polynomials that differ part at some values of the symbols, not at all of them.
        scope, remark = Scope.INPUT, "not an identity: the sides part at some input"
    return Evidence(
        theorem=theorem.number,
        claim=claim.id,
        says=claim.says,
        relation=claim.relation.value,
        case=case.name,
        scope=scope,
        means=means,
        verdict=shown.verdict,
        expect=claim.expect,
        witness=shown.witness,
        remark=remark,
        erratum=erratum,
    )


def rounded_up(error: Fraction) -> str:
    """The least power of ten that is not below an error probability, as text."""
    power = 0
    while Fraction(1, 10 ** (power + 1)) >= error:
        power += 1
    return f"1e-{power}"


def jobs_of(catalogue: Sequence[Theorem], request: Request | None = None) -> list[Job]:
    """The cases to judge: the worked ones, or those that the request's options ask for.

    Raises:
        ValueError: an option that is taken by none of the sections it asks for, or a value that one refuses.
    """
    jobs: list[Job] = []
    taken: set[str] = set()
    asked = request is not None and bool(request.given() or request.means is not None)
    for t, theorem in enumerate(catalogue):
        for s, section in enumerate(theorem.sections):
            cases = section.cases
            if asked and request is not None:
                cases = section.requested(request) if section.requested else ()
                taken |= set(section.options) if cases else set()
            jobs += [Job(t, s, case) for case in cases]
        if theorem.proofs and not asked:
            jobs.append(Job(t, 0, None))
    if asked and request is not None:
        names = ", ".join(theorem.number for theorem in catalogue)
        if not jobs:
            options = ", ".join(request.given()) or f"means={request.means.name.lower() if request.means else ''}"
            raise ValueError(f"Theorem {names}: no case takes the options given ({options}); see verify --help")
        if idle := [name for name in request.given() if name not in taken]:
            raise ValueError(f"Theorem {names}: nothing that is asked for takes {', '.join(idle)}; leave it out")
    return jobs


def verify(catalogue: Iterable[Theorem], request: Request | None = None) -> Iterator[Evidence]:
    """The evidence for every claim of every theorem of the catalogue, in order.

    Args:
        catalogue: theorems, for example ``constructions.CATALOGUE``.
        request: a user's own graph or sizes; None judges the worked cases.

    Raises:
        ValueError: an option that no theorem takes, or a broken premise.
    """
    theorems = tuple(catalogue)
    for job in jobs_of(theorems, request):
        yield from judge_job(theorems, job)


def judge_job(theorems: Sequence[Theorem], job: Job) -> list[Evidence]:
    """The evidence of one job: of a case, or of a theorem's machine-checked proofs."""
    theorem = theorems[job.theorem]
    if job.case is None:
        return judge_proofs(theorem)
    return judge_case(theorem, theorem.sections[job.section], job.case)


def judge_proofs(theorem: Theorem) -> list[Evidence]:
    """A row for each machine-checked theorem whose file, as it is now, the proof checker accepted."""
    return [
        Evidence(theorem.number, f"proof:{proof.name}", proof.says, "⊢", f"proofs/{proof.file}", Scope.ALL, Means.PROOF,
                 Verdict.HOLDS, Verdict.HOLDS, remark="accepted without axioms")
        for proof in theorem.proofs
        if is_accepted(proof)
    ]


def verify_in_parallel(load: Callable[[], Sequence[Theorem]], keys: Sequence[str], request: Request | None,
                       workers: int) -> Iterator[Evidence]:
    """:func:`verify` on several processes; the rows come in the same order.

    Args:
        load: an importable function that returns the catalogue (each process calls it).
        keys: the theorems wanted, by :attr:`Theorem.key`; empty for all.
        workers: how many processes.
    """
    count = len(jobs_of(select(load(), keys), request))
    with ProcessPoolExecutor(workers) as pool:
        futures = [pool.submit(_judge_job, load, tuple(keys), request, index) for index in range(count)]
        try:
            for future in futures:
                yield from future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _judge_job(load: Callable[[], Sequence[Theorem]], keys: Sequence[str], request: Request | None,
               index: int) -> list[Evidence]:
    theorems = select(load(), keys)
    return judge_job(theorems, jobs_of(theorems, request)[index])


def select(catalogue: Sequence[Theorem], keys: Sequence[str]) -> tuple[Theorem, ...]:
    """The theorems of the given numbers (either number of a pair), in the catalogue's order; all when none is given.

    Raises:
        ValueError: an unknown number; the message lists those that exist.
    """
    names = {theorem.number: theorem.keys for theorem in catalogue}
    known = [name for both in names.values() for name in both]
    for key in keys:
        if key not in known:
            raise ValueError(f"no theorem {key!r}; there are {', '.join(names)}")
    return tuple(t for t in catalogue if not keys or set(names[t.number]) & set(keys))


def is_sound(rows: Iterable[Evidence]) -> bool:
    """Whether every verdict is the expected one."""
    return all(row.is_expected for row in rows)


def strongest(rows: Iterable[Evidence]) -> Evidence | None:
    """The row of widest scope and, within it, of strongest means, among those that establish what is claimed."""
    good = [row for row in rows if row.is_expected and row.verdict in (Verdict.HOLDS, Verdict.AGREES)]
    return max(good, key=lambda row: (row.scope, row.means), default=None)
