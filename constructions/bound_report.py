"""The answer to ``iha-theory bounds``: for one matrix and k, what is possible, what is not, and why."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from math import lcm
from typing import Any

import numpy as np

from constructions.bank import deciding_features
from constructions.blocks import miss_probability, row_sum, unit_like
from constructions.least_heads import CONVENTIONS, Convention
from constructions.oracle import filter_bank
from constructions.power_certificates import (
    Apart,
    Proportional,
    is_apart,
    is_dependence,
    is_independence,
    is_proportional,
)
from constructions.power_structure import Powers
from iha_theory.book import BoundReport
from iha_theory.claims import Relation, Verdict
from iha_theory.comparison import compare
from iha_theory.count import ceil_sqrt, memory
from iha_theory.residues import Residues, random_primes
from iha_theory.scalars import INTEGERS, RATIONALS, RESIDUES, as_fraction
from iha_theory.verification import rounded_up

_PRIMES = 3
#: Heads times n^3, times the length of the numbers, up to which a layer is verified exactly, for every X; beyond, by
#: residues.
_EXACT_WORK = 400_000
_LONG_NUMBER = 10_000
_MEMORY_LIMIT = 2 << 30


def bound_report(a: np.ndarray, k: int) -> BoundReport:
    """What is possible for the bank [X, AX, ..., A^(k-1) X] of this matrix, with certificates and verified layers.

    Args:
        a: (n, n), exact. k: how many powers, at least 1.

    Raises:
        ValueError: A is not square or not exact, k is below 1, or the layers would not fit into memory.
    """
    structure = Powers(a, k)
    n = structure.n
    needed = memory({"source": k, "head": k, "out": k, "pseudo": 1, "model": n + 1, "key": n, "value": 1}, n, 8)
    needed = 2 * needed + k * n * n * 64
    if needed > _MEMORY_LIMIT:
        raise ValueError(f"n={n}, k={k}: the layers that meet the bounds need about {needed / 2**30:.1f} GiB, more than "
                         f"the limit of {_MEMORY_LIMIT / 2**30:.0f} GiB; take fewer powers or a smaller graph")
    certificates = _certificates(structure)
    row, common = row_sum(structure.a)
    digits = 1 + n * k * (row * common).bit_length() // _LONG_NUMBER
    large = [c for c in CONVENTIONS.values() if c.least(structure) * n**3 * digits > _EXACT_WORK]
    verified = dict(zip((c.title for c in large), _by_residues(structure, large), strict=True)) if large else {}
    rows, met = [], True
    for convention in CONVENTIONS.values():
        how, good = verified.get(convention.title) or _exactly(structure, convention)
        met = met and good
        least = convention.least(structure)
        paper = {"k": str(k), "ceil(sqrt k)": str(ceil_sqrt(k))}[convention.paper]
        rows.append((convention.title, str(least), convention.because(structure), how, paper))
    return BoundReport(
        numbers={
            "s": f"{structure.s} of the k = {k} powers are independent",
            "rho": f"{structure.rho} classes of proportional non-zero powers",
            "tau": f"A^{structure.tau} is a multiple of A^{structure.tau - 1}" if structure.tau else
            f"no A^t is a multiple of A^(t-1) for t < {k}",
            "scalar": "A is a multiple of the identity" if structure.is_scalar else "A is no multiple of the identity",
        },
        rows=tuple(rows),
        certificates=tuple(certificates),
        notes=_notes(structure),
        is_sound=met and all(certificate["accepted"] for certificate in certificates),
    )


def _exactly(structure: Powers, convention: Convention) -> tuple[str, bool]:
    """Verify the layer that meets the bound for every X, exactly: how, and whether it outputs the bank."""
    k = structure.k
    domain = INTEGERS if structure.scale == 1 and structure.dependence is None else RATIONALS
    a = domain.array(structure.a)
    placed = convention.meets(structure, a, 1)
    features = domain.array(deciding_features(placed.weights, a, k, 1, placed.projection))
    x = np.concatenate([features, unit_like(a, structure.n)], axis=1)
    outcome = compare(Relation.EQUAL, placed.output(x, k), filter_bank(a, features, k), domain)
    return f"{placed.weights.sizes['out']} heads, exactly, for every X", outcome.verdict is Verdict.HOLDS


def _by_residues(structure: Powers, conventions: list[Convention]) -> list[tuple[str, bool]]:
    """Verify the layers of several conventions at random features modulo random primes."""
    k, heads, good = structure.k, [0] * len(conventions), [True] * len(conventions)
    for prime in random_primes(_PRIMES, seed=structure.n + k):
        a = Residues(structure.a, prime)
        features = Residues(np.random.default_rng(prime).integers(0, prime, (structure.n, 1)), prime)
        x = np.concatenate([features, unit_like(a, structure.n)], axis=1)
        target = filter_bank(a, features, k)
        for place, convention in enumerate(conventions):
            placed = convention.meets(structure, a, 1)
            outcome = compare(Relation.EQUAL, placed.output(x, k), target, RESIDUES)
            good[place] = good[place] and outcome.verdict is Verdict.HOLDS
            heads[place] = placed.weights.sizes["out"]
    error = rounded_up(miss_probability(_height(structure), 3) ** _PRIMES)
    return [(f"{count} heads, by {_PRIMES} residues, error at most {error}", fine)
            for count, fine in zip(heads, good, strict=True)]


def _height(structure: Powers) -> int:
    """A bound on the coefficients of output minus bank as a polynomial in X, denominators cleared.

    An output entry is a sum of products of a power's entry from a query and one from a key, a value entry and a
    projection entry; the last two are coefficients of the structure.
    """
    row, common = row_sum(structure.a)
    fractions = [as_fraction(value) for value in structure.in_basis.flat]
    fractions += [as_fraction(c.factor) / Fraction(structure.scale) ** (c.power - c.representative)
                  for c in structure.classes]
    denominator = reduce(lcm, (f.denominator for f in fractions), 1)
    largest = max(max(abs(f.numerator) for f in fractions), 1)
    n, k = structure.n, structure.k
    terms = (k * (n + 1)) ** 3 * n * n * k**3
    return 2 * terms * (row * common) ** (4 * k) * (largest * denominator) ** 2


def _certificates(structure: Powers) -> list[dict[str, Any]]:
    """Every certificate as plain data, with the answer of its checker."""
    m, independence, dependence = structure.matrix, structure.independence, structure.dependence
    found: list[dict[str, Any]] = [{
        "kind": "independence",
        "says": f"at x, the {independence.size} x {independence.size} minor of [x, Mx, ...] on these rows is not zero, "
                f"M = {_multiple(structure.scale)}",
        "x": list(independence.x), "rows": list(independence.minor.rows), "minor": str(independence.minor.value),
        "accepted": is_independence(m, independence),
    }]
    if dependence is not None:
        found.append({
            "kind": "dependence", "says": f"M^{structure.s} is this combination of I, M, ..., M^{structure.s - 1}",
            "coefficients": [str(c) for c in dependence.coefficients], "accepted": is_dependence(m, dependence),
        })
        found += [_class_certificate(structure, c) for c in structure.classes if c.power != c.representative or c.factor == 0]
        found += [_apart_certificate(structure, c)
                  for c in dict.fromkeys((*structure.classes_apart(), *structure.neighbours_apart()))]
    return found


def _multiple(number: int) -> str:
    if number == 1:
        return "A"
    return f"{number} A" if number < 10**30 else f"qA, q of {number.bit_length()} bits"


def _class_certificate(structure: Powers, c: Proportional) -> dict[str, Any]:
    says = f"M^{c.power} = 0" if c.factor == 0 else f"M^{c.power} = {c.factor} M^{c.representative}"
    return {"kind": "class", "says": says, "accepted": is_proportional(structure.matrix, c)}


def _apart_certificate(structure: Powers, c: Apart) -> dict[str, Any]:
    return {"kind": "apart", "says": f"M^{c.first} and M^{c.second} are not proportional: a 2 x 2 minor of their entries",
            "places": list(c.places), "accepted": is_apart(structure.matrix, c)}


def least_pseudo_heads(heads: int, blocks: int) -> tuple[int, str]:
    """The fewest pseudo-heads known to route H x L blocks, and how."""
    if (heads, blocks) == (3, 3):
        return 2, "signed"
    tiled = next(p for p in range(1, heads + 1) if -(-heads // p) * -(-blocks // p) <= heads)
    return tiled, "tiled" if tiled < heads else "the paper's routing"


def _notes(structure: Powers) -> tuple[str, ...]:
    k, s = structure.k, structure.s
    heads = ceil_sqrt(k)
    blocks = -(-k // heads)
    needed = ceil_sqrt(-(-s // heads))
    known, how = (1, "R sums the heads") if s <= heads else least_pseudo_heads(heads, blocks)
    state = "this is the least" if known == needed else "whether fewer suffice is open"
    return (
        f"Pseudo-heads at H = {heads}: at least {needed}, since H P^2 >= s = {s}; {known} are known to do ({how}): {state}.",
        "One head serves at most one class of proportional powers (any A, any widths, weights free to depend on A); with a "
        "projection the operators of H heads satisfy dim Lx <= H for every x; IHA is multi-head attention with a "
        "projection and H^2, or H P^2, heads. See the theorem 'Lower bounds' and the machine-checked proofs.",
        "The bounds are for exact equality. One head can come arbitrarily close to [x, Ax] with growing weights, so that "
        "the small residual of an optimiser refutes nothing.",
    )


