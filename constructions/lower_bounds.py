"""How few heads can produce the bank [X, AX, ..., A^(k-1) X]: exact answers for every A, with certificates.

Statement. Let s be the dimension of the span of I, A, ..., A^(k-1), rho the number of proportionality classes among the
non-zero powers, tau the least t >= 1 with A^t a multiple of A^(t-1). The least number of heads of one layer of linear
attention on [X, I], for fixed A and all X, is exactly

    multi-head, target columns placed freely, heads of any width      rho
    multi-head, target columns in order, heads of any width           min(k, tau)
    multi-head, in order, one width for all heads                     1 if k = 1 or A is a multiple of I, else k
    multi-head, with an output projection                             s
    IHA, in order, one width                                          min(s, ceil(sqrt k))
    IHA, with an output projection                                    ceil(sqrt s)

and H P^2 >= s for IHA with P pseudo-heads. In the paper's reading (in order, one width) the k heads of Theorem 1 are the
best possible for every A that is not a multiple of the identity, and the ceil(sqrt k) heads of Theorem 3 are the best
possible whenever the k powers are independent.

Premises. Equality for all X. Weights may depend on A and never on X; key and value widths are free.

Idea. A column of a head is a polynomial of degree 3 in X; for it to be A^i X e_c the parts of degree 3, 2 and 0 vanish,
and what is left makes the head's operator a multiple of A^i, or A^i a multiple of I plus a fixed matrix of rank one. Powers
of one matrix that have that second form are proportional. With a projection, the space L of operators that H heads
represent has dim Lx <= H for every x as soon as it contains I, which the bank does: one vector x with s independent
A^i x is a certificate. IHA is multi-head attention with a projection and H^2 (or H P^2) heads.

Checked: for each A, that the certificates are right and that the layer of the stated size outputs the bank, for every X.
The step from a certificate to the bound is a theorem for all sizes; see the machine-checked proofs. Its parts are also
checked here at small sizes: the reductions of IHA to multi-head attention, the degree argument's identities, every head
over the fields of two and three elements, Groebner bases of the coefficient equations. How near an inexact head can come
(border rank), and how many dimensions the operators of a layer span, are measured exactly.

Not checked: P. Which P is least at H = ceil(sqrt k) is open for some H (7 and 8, for example): the best known is stated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from constructions import proved
from constructions.bank import deciding_features
from constructions.blocks import unit_like
from constructions.border_rank import BORDER_ERRORS, BORDER_RANK
from constructions.degree_argument import DEGREES, RANK_ONE
from constructions.least_heads import CONVENTIONS, Placed
from constructions.operator_span import MIXED, SPAN
from constructions.oracle import filter_bank
from constructions.power_certificates import is_apart, is_dependence, is_independence, is_proportional
from constructions.power_structure import Powers
from constructions.reduction_sections import REDUCTIONS
from constructions.sample_matrices import EXPECTED, GALLERY, sample
from constructions.small_impossible import ONE_HEAD, ONE_IHA_HEAD, PROJECTED_HEADS
from constructions.tiny_fields import ALL_HEADS, TWO_ELEMENTS, TWO_MATRICES
from iha_theory.claims import Case, Claim, Mutant, Relation, Scope, Section, Theorem
from iha_theory.layer import IHA
from iha_theory.scalars import INTEGERS, RATIONALS, Domain


@dataclass(frozen=True)
class Met:
    """A layer that should output the bank, where the bank stands in its output, and the number of heads it should have."""

    weights: IHA
    placed: Placed
    least: int
    x: np.ndarray
    target: np.ndarray

    @cached_property
    def output(self) -> np.ndarray:
        return replace(self.placed, weights=self.weights).output(self.x, self.target.shape[1])


def _met(convention: str, *, domain: Domain, name: str, k: int, d: int) -> Met:
    structure, chosen = Powers(sample(name), k), CONVENTIONS[convention]
    a = domain.array(structure.a)
    placed = chosen.meets(structure, a, d)
    features = domain.array(deciding_features(placed.weights, a, k, d, placed.projection))
    x = np.concatenate([features, unit_like(a, structure.n)], axis=1)
    return Met(placed.weights, placed, chosen.least(structure), x, filter_bank(a, features, k))


def _free(instance: Met) -> dict[str, np.ndarray]:
    """Padding: value columns that the target skips; and, in IHA, what R ignores or what is multiplied by zero."""
    size, fields = instance.weights.sizes, instance.weights.fields()
    if not instance.weights.is_mixed:
        skipped = np.full(size["out"] * size["value"], instance.placed.columns is not None)
        skipped[list(instance.placed.columns or ())] = False
        return {"weights.w_v": np.broadcast_to(skipped.reshape(size["out"], 1, size["value"]), fields["w_v"].shape)}
    return {
        "weights.alpha_q": np.broadcast_to((fields["collapse"] == 0).all(axis=0), fields["alpha_q"].shape),
        "weights.collapse": np.broadcast_to((fields["alpha_q"] == 0).all(axis=0), fields["collapse"].shape),
    }


def _case(name: str, k: int, d: int = 1) -> Case:
    domain = RATIONALS if name in ("halves", "degree 2", "transvection", "invertible", "projection") else INTEGERS
    return Case(f"{name}, k={k}, d={d}", domain, Scope.GRAPH, {"name": name, "k": k, "d": d})


def _one_head_fewer(instance: Met) -> Met:
    """The last output head is gone: its value columns, or its row of R, are zero."""
    w = instance.weights
    if w.collapse is not None:
        collapse = w.collapse.copy()
        collapse[-1] = collapse[-1] * 0
        return replace(instance, weights=replace(w, collapse=collapse))
    w_v = w.w_v.copy()
    w_v[-1] = w_v[-1] * 0
    return replace(instance, weights=replace(w, w_v=w_v))


def _section(convention: str, *first: tuple[str, int]) -> Section:
    chosen = CONVENTIONS[convention]
    return Section(
        title=chosen.title,
        instance=lambda **source: _met(convention, **source),
        cases=tuple(_case(name, k) for name, k in dict.fromkeys((*first, *GALLERY))),
        claims=(
            Claim(f"{convention}-meets", f"{chosen.title}: a layer with the least number of heads outputs the bank",
                  Relation.EQUAL, lambda i: i.output, lambda i: i.target,
                  sides=("the layer's output", "[X, AX, ..., A^(k-1) X] by repeated multiplication")),
            Claim(f"{convention}-heads", f"{chosen.title}: that layer has the number of heads of the bound",
                  Relation.EQUAL, lambda i: i.weights.sizes["out"], lambda i: i.least, domain=INTEGERS),
        ),
        free=_free,
        mutants=(Mutant("one head fewer", _one_head_fewer, (f"{convention}-meets",)),
                 Mutant("a bound one lower", lambda i: replace(i, least=i.least - 1), (f"{convention}-heads",))),
    )


#: The first case of a section is the one whose every weight entry is moved: it has padding where there can be some.
MEETING = (
    _section("free", ("projection", 4), ("swap", 2)), _section("ordered", ("projection", 4), ("swap", 2)),
    _section("one-width", ("swap", 2)), _section("projected", ("swap", 2)), _section("iha", ("transvection", 4)),
    _section("iha-projected", ("cyclic", 4)),
)


@dataclass(frozen=True)
class Certified:
    """The certificates of a matrix's powers, each with what its checker says."""

    structure: Powers

    @cached_property
    def checks(self) -> dict[str, int]:
        """Kind of certificate to the number of wrong ones."""
        p = self.structure
        return {
            "independence": int(not is_independence(p.matrix, p.independence)),
            "dependence": int(p.dependence is not None and not is_dependence(p.matrix, p.dependence)),
            "classes": sum(not is_proportional(p.matrix, c) for c in p.classes),
            "apart": sum(not is_apart(p.matrix, c) for c in (*p.classes_apart(), *p.neighbours_apart())),
        }


@dataclass(frozen=True)
class Numbers:
    """The numbers found for a matrix and those worked by hand."""

    structure: Powers
    expected: tuple[int, int, int, int]

    @cached_property
    def found(self) -> tuple[int, int, int, int]:
        p = self.structure
        return p.s, p.rho, min(p.k, p.tau or p.k), CONVENTIONS["one-width"].least(p)


def _numbers(*, domain: Domain, name: str, k: int) -> Numbers:
    return Numbers(Powers(sample(name), k), EXPECTED[name, k])


NUMBERS = Section(
    title="the numbers of the powers",
    instance=_numbers,
    cases=tuple(Case(f"{name}, k={k}", INTEGERS, Scope.GRAPH, {"name": name, "k": k}) for name, k in GALLERY),
    claims=(Claim("numbers", "s, rho, min(k, tau) and the least heads with one width are as worked by hand",
                  Relation.EQUAL, lambda i: list(i.found), lambda i: list(i.expected)),),
    mutants=(Mutant("one power fewer", lambda i: replace(i, structure=Powers(i.structure.a, 1)), ("numbers",)),),
)
CERTIFICATES = Section(
    title="certificates",
    instance=lambda *, domain, name, k: Certified(Powers(sample(name), k)),
    cases=tuple(Case(f"{name}, k={k}", INTEGERS, Scope.GRAPH, {"name": name, "k": k})
                for name, k in (*GALLERY, ("karate", 16), ("karate", 30))),
    claims=(Claim("certificates", "every certificate (independence, dependence, classes, apart) is accepted by its checker",
                  Relation.EQUAL, lambda i: list(i.checks.values()), lambda i: 0),),
    mutants=(Mutant("the certificates of another matrix", lambda i: _Tampered(i.structure), ("certificates",)),),
)


class _Tampered(Certified):
    """The certificates of A, presented for 2A + I."""

    @cached_property
    def checks(self) -> dict[str, int]:
        p = self.structure
        other = Powers(p.a * 2 + unit_like(p.a, p.n), p.k).matrix
        return {"classes": sum(not is_proportional(other, c) for c in p.classes) + int(
            p.dependence is not None and not is_dependence(other, p.dependence))}


THEOREM = Theorem(
    number="Lower bounds",
    title="The least number of heads for a filter bank",
    source="beyond the paper; it sharpens the conclusions of Theorems 1 and 3",
    statement="The least number of heads of linear attention for [X, AX, ..., A^(k-1) X] is rho, min(k, tau), k or s, "
    "by the output convention, for multi-head attention, and min(s, ceil(sqrt k)) or ceil(sqrt s) for IHA.",
    sections=(
        NUMBERS, CERTIFICATES, *MEETING, REDUCTIONS, DEGREES, RANK_ONE, ALL_HEADS, TWO_ELEMENTS, TWO_MATRICES, ONE_HEAD,
        PROJECTED_HEADS, ONE_IHA_HEAD, BORDER_RANK, BORDER_ERRORS, MIXED, SPAN,
    ),
    proofs=proved.LOWER_BOUNDS,
    headline=("certificates", "one-width-meets", "iha-meets"),
)
