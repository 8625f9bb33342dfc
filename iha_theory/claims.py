"""Records: what a claim is, what a piece of evidence is. Nothing here computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iha_theory.scalars import Domain

if TYPE_CHECKING:
    from iha_theory.graphs import Graph


class Relation(Enum):
    """How the left side of a claim relates to its right side, element by element."""

    EQUAL = "="
    DIFFERENT = "≠"
    AT_MOST = "≤"
    LESS = "<"


class Verdict(Enum):
    """What was found. AGREES: an equality that rounding or a radius cannot refute; OPEN: the balls overlap."""

    HOLDS = "holds"
    AGREES = "agrees"
    FAILS = "fails"
    OPEN = "open"


class Scope(IntEnum):
    """What a verdict speaks of: this input; every X on this graph; every A and X at this size; every size."""

    INPUT = 1
    GRAPH = 2
    SIZE = 3
    ALL = 4


class Means(IntEnum):
    """By what means a verdict is known, weakest first."""

    FLOAT = 1
    BALL = 2
    RESIDUE = 3
    EXACT = 4
    PROOF = 5


@dataclass(frozen=True)
class Case:
    """One instance of a section of a theorem.

    Attributes:
        name: the sizes in the paper's letters, for example ``"n=3, d=2, k=9"``.
        domain: the scalars of the instance.
        scope: what an equality on this instance speaks of.
        parameters: keyword arguments of the section's ``instance``.
    """

    name: str
    domain: Domain
    scope: Scope
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What a user asks to verify beyond the worked cases; an option that was not given is None.

    Attributes:
        graph: the graph as A. features: (n, d), the rows as X. k: powers of the bank. pseudo_heads: P.
        n: tokens. modulus, coefficient: M and G of CPM-3.
        means: the means asked for; None lets the theorem choose the strongest that fits.
    """

    graph: Graph | None = None
    features: np.ndarray | None = None
    k: int | None = None
    pseudo_heads: int | None = None
    n: int | None = None
    modulus: int | None = None
    coefficient: int | None = None
    means: Means | None = None

    def given(self) -> tuple[str, ...]:
        """The names of the options that were given, ``means`` apart."""
        return tuple(name for name, value in vars(self).items() if value is not None and name != "means")


@dataclass(frozen=True)
class Premise:
    """A condition of a section: a sentence for the reader and a predicate of the instance."""

    says: str
    is_met: Callable[[Any], bool]


@dataclass(frozen=True)
class Claim:
    """``left`` relation ``right``, both functions of an instance, compared element by element.

    Attributes:
        id: short name, unique in its theorem.
        says: the claim in one sentence.
        expect: the verdict of a sound toolkit: HOLDS, or FAILS for a statement that is printed and false.
        domain: the scalars of both sides, when they are not those of the case (counts are integers, for example).
        scope: the scope, when it is not that of the case.
        applies: on which instances the claim speaks.
        bound: for floats, an upper bound of the rounding error of |left - right|, element by element.
        sides: what the left and the right side are, for a reader; "" where the sentence says it.
    """

    id: str
    says: str
    relation: Relation
    left: Callable[[Any], Any]
    right: Callable[[Any], Any]
    expect: Verdict = Verdict.HOLDS
    domain: Domain | None = None
    scope: Scope | None = None
    applies: Callable[[Any], bool] = lambda instance: True
    bound: Callable[[Any], np.ndarray | float] | None = None
    sides: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Erratum:
    """A place where the printed text does not hold as it stands, and what holds instead.

    Attributes:
        kind: ``misprint``, ``false`` (a statement or step that fails) or ``gap`` (something left unsaid that is needed).
        where: the place in the paper, by its own numbers.
        says: what is printed, under which premises, and what holds instead, in our words.
        printed: the claim as printed; it is expected to fail, with a witness.
        corrected: claims that hold instead; at least one.
    """

    id: str
    kind: str
    where: str
    says: str
    printed: Claim
    corrected: tuple[Claim, ...]


@dataclass(frozen=True)
class Mutant:
    """A wrong construction: ``change`` turns an instance into one that claim ``flips`` must judge differently."""

    says: str
    change: Callable[[Any], Any]
    flips: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """One instance builder with its cases, claims and errata.

    Attributes:
        instance: builds the instance of a case; called with ``domain`` and the case's parameters.
        free: the entries of the weights that the claims do not constrain, by instance and weight name: Boolean arrays.
        mutants: wrong constructions that the claims must tell from the right one.
        requested: the cases that a user's options ask for; None when the section takes none.
        options: the options that ``requested`` reads, ``means`` apart.
    """

    title: str
    instance: Callable[..., Any]
    cases: tuple[Case, ...]
    claims: tuple[Claim, ...]
    errata: tuple[Erratum, ...] = ()
    premises: tuple[Premise, ...] = ()
    free: Callable[[Any], Mapping[str, np.ndarray]] | None = None
    mutants: tuple[Mutant, ...] = ()
    requested: Callable[[Request], tuple[Case, ...]] | None = None
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proof:
    """A machine-checked theorem: what it says, its name, and the file that proves it.

    Attributes:
        folder: where the file and the list of accepted files are.
    """

    name: str
    file: str
    says: str
    folder: Path


@dataclass(frozen=True)
class Theorem:
    """A numbered result of the paper, with all that is claimed and checked about it.

    Attributes:
        number: the paper's number, with its full form in the appendix: ``"3 (6)"``.
        statement: one sentence. headline: the claims that say it, for the overview.
        proofs: the machine-checked theorems behind it, if any.
    """

    number: str
    title: str
    source: str
    statement: str
    sections: tuple[Section, ...] = ()
    headline: tuple[str, ...] = ()
    proofs: tuple[Proof, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The names that the command line takes: both numbers of a theorem, or an appendix's whole name."""
        if self.number[0].isdigit():
            return tuple(self.number.replace("(", "").replace(")", "").split())
        return (self.number,)

    @property
    def key(self) -> str:
        """The first of :attr:`keys`, which the claims' names begin with."""
        return self.keys[0]

    @property
    def errata(self) -> tuple[Erratum, ...]:
        return tuple(erratum for section in self.sections for erratum in section.errata)


@dataclass(frozen=True)
class Witness:
    """Where the two sides part: an index into both, and the values there."""

    index: tuple[int, ...]
    left: str
    right: str

    def __str__(self) -> str:
        place = f"[{', '.join(map(str, self.index))}]: " if self.index else ""
        return f"{place}{self.left} against {self.right}"


@dataclass(frozen=True)
class Evidence:
    """One row: a claim, judged on a case. ``remark`` holds the error probability, the bound or the radius."""

    theorem: str
    claim: str
    says: str
    relation: str
    case: str
    scope: Scope
    means: Means
    verdict: Verdict
    expect: Verdict
    witness: Witness | None = None
    remark: str = ""
    erratum: str = ""

    @property
    def is_expected(self) -> bool:
        """Whether a sound toolkit shows this verdict: AGREES serves where an equality is expected to hold."""
        if self.verdict is Verdict.AGREES:
            return self.expect is Verdict.HOLDS
        return self.verdict is self.expect
