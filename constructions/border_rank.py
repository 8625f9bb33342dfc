"""The bounds are about equality: with growing weights one head comes as close to [x, Ax] as one likes.

Statement. Let A z = g z and c . z = 1. For every eps that is not 0, the linear head on [x, I] with the scores and the
value columns

    S(x) = A - g I + eps x c^T,        (0; z/eps)  and  (1; g z/eps),

outputs [x, Ax + eps (c . x) x]. The error is eps (c . x) x: it is never zero as a function of x, and it vanishes with
eps, while the entries z/eps grow.

Why it matters. One head serves one class of powers, exactly, so that [x, Ax] needs two heads unless A is a multiple of
the identity. An optimiser that finds a small residual with one head has not refuted that: it walks along this curve.
A residual in floating point is a certificate of nothing, neither way.

Premises. An eigenvector z of A (over the scalars at hand), and one feature, d = 1.

Idea. (A - g I) z = 0, so that z/eps reads eps x c^T alone: S(x) z/eps = x. The same column, times g and added to x,
puts back the g that the scores lack: S(x)(x + g z/eps) = (A - g I) x + eps x (c . x) + g x.

Checked: the identity for every A with an eigenvector whose first entry is 1, every x, c and eps at N = 2, 3; the error
and the largest weight at eps = 1, 1/10, ..., exactly: their product does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from constructions.blocks import symbols, unit_like, zeros_like
from constructions.degree_argument import head_of_scores
from constructions.oracle import filter_bank
from constructions.score_functions import in_field
from iha_theory.attention import linear
from iha_theory.claims import Case, Claim, Mutant, Premise, Relation, Scope, Section
from iha_theory.layer import IHA, forward
from iha_theory.scalars import POLYNOMIALS, RATIONALS, Domain, as_fraction, elementwise, object_array


def border_head(a: np.ndarray, z: np.ndarray, g: Any, c: np.ndarray, eps: Any) -> IHA:
    """One head that outputs [x, Ax + eps (c . x) x] from [x, I], for A z = g z and c . z = 1.

    Args:
        a: (n, n), scalars that divide. z, c: (n, 1). g, eps: scalars, eps not 0.

    Raises:
        ValueError: eps is 0.
    """
    if eps == 0:
        raise ValueError("border_head: eps is 0; the limit is no layer, its weights would be infinite")
    n = a.shape[0]
    scores, values = zeros_like(a, (n + 1, n + 1)), zeros_like(a, (n + 1, 2))
    scores[1:, 1:] = a - unit_like(a, n) * g
    scores[:1, 1:] = c.T * eps
    values[1:] = np.concatenate([z / eps, z * g / eps], axis=1)
    values[:1, 1:] = unit_like(a, 1)
    return head_of_scores(scores, values)


@dataclass(frozen=True)
class Border:
    """The head, A with its eigenvector, and an input x (n, 1)."""

    weights: IHA
    a: np.ndarray
    z: np.ndarray
    g: Any
    c: np.ndarray
    eps: Any
    x: np.ndarray

    @cached_property
    def output(self) -> np.ndarray:
        return _output(self.weights, self.x)

    @property
    def target(self) -> np.ndarray:
        """[x, Ax]."""
        return filter_bank(self.a, self.x, 2)

    @property
    def error(self) -> np.ndarray:
        """[0, (c . x) x]: what eps multiplies."""
        return np.concatenate([self.x - self.x, self.x * (self.c.T @ self.x)[0, 0]], axis=1)


def _output(weights: IHA, x: np.ndarray) -> np.ndarray:
    return forward(weights, np.concatenate([x, unit_like(x, x.shape[0])], axis=1), linear)


def _border(*, domain: Domain, n: int) -> Border:
    """Symbols, or numbers: z_0 = 1, the columns A_1, ..., z and c_1, ... are free, the rest follows."""
    shapes = {"a": (n, n - 1), "z": (n - 1, 1), "c": (n - 1, 1), "x": (n, 1)}
    if domain is POLYNOMIALS:
        matrices, (g, eps) = symbols(shapes, extra=["g", "eps"])
        matrices = {name: elementwise(in_field, matrix) for name, matrix in matrices.items()}
        g, eps = in_field(g), in_field(eps)
    else:
        source = np.random.default_rng(1)
        matrices = {name: domain.array(source.choice([-3, -2, 2, 3], shape)) for name, shape in shapes.items()}
        g, eps = domain.element(5), domain.element(Fraction(1, 7))
    rest, one = matrices["a"], unit_like(matrices["x"], 1)
    z = np.concatenate([one, matrices["z"]])
    a = np.concatenate([z * g - rest @ matrices["z"], rest], axis=1)
    c = np.concatenate([one - matrices["c"].T @ matrices["z"], matrices["c"]])
    return Border(border_head(a, z, g, c, eps), a, z, g, c, eps, matrices["x"])


def _equal(left: np.ndarray, right: np.ndarray) -> bool:
    return bool((left == right).all())


def _with_eigenvalue_zero(instance: Border) -> Border:
    i = instance
    return replace(i, weights=border_head(i.a, i.z, i.g - i.g, i.c, i.eps))


BORDER_RANK = Section(
    title="one head that approaches two powers",
    instance=_border,
    cases=(
        Case("numbers, n=2, eps=1/7", RATIONALS, Scope.INPUT, {"n": 2}),
        Case("symbolic, n=2", POLYNOMIALS, Scope.SIZE, {"n": 2}),
        Case("symbolic, n=3", POLYNOMIALS, Scope.SIZE, {"n": 3}),
    ),
    claims=(
        Claim("border", "one head outputs [x, Ax + eps (c . x) x] for every eps that is not 0", Relation.EQUAL,
              lambda i: i.output, lambda i: i.target + i.error * i.eps),
        Claim("border-never", "that is not [x, Ax]", Relation.DIFFERENT, lambda i: i.output, lambda i: i.target),
    ),
    premises=(
        Premise("z is an eigenvector of A: A z = g z", lambda i: _equal(i.a @ i.z, i.z * i.g)),
        Premise("c . z = 1", lambda i: _equal(i.c.T @ i.z, unit_like(i.z, 1))),
    ),
    mutants=(
        Mutant("the eigenvalue taken to be 0", _with_eigenvalue_zero, ("border",)),
        Mutant("an input that c does not see", lambda i: replace(i, x=i.x - i.x), ("border-never",)),
    ),
)


class BorderError(NamedTuple):
    """At one eps: the largest absolute weight, and the largest absolute error for x in {-1, 0, 1}^n."""

    eps: Fraction
    weight: Fraction
    error: Fraction


STEPS = tuple(Fraction(1, 10**i) for i in range(7))


def border_errors(n: int = 3, steps: Sequence[Fraction] = STEPS) -> list[BorderError]:
    """How the error of one head for [x, Ax] falls as its weights grow, A the cyclic shift of n tokens, exactly.

    z is all ones, g = 1, and c = e_0, so that the error is eps x_0 x.

    Args:
        n: tokens, at least 2. steps: the values of eps, none of them 0.

    Raises:
        ValueError: n is below 2, where A is a multiple of the identity, or eps is 0.
    """
    if n < 2:
        raise ValueError(f"border_errors: got n={n}, wanted at least 2 tokens")
    a = RATIONALS.array(np.roll(np.eye(n, dtype=int), 1, axis=1))
    z, c = zeros_like(a, (n, 1)) + 1, unit_like(a, n)[:, :1]
    points = [RATIONALS.array(np.reshape(point, (n, 1))) for point in product((-1, 0, 1), repeat=n)]
    rows: list[BorderError] = []
    for eps in steps:
        weights = border_head(a, z, RATIONALS.element(1), c, RATIONALS.element(eps))
        largest = max(abs(as_fraction(entry)) for array in weights.fields().values() for entry in array.flat)
        gaps = (_output(weights, x) - filter_bank(a, x, 2) for x in points)
        error = max(abs(as_fraction(entry)) for gap in gaps for entry in gap.flat)
        rows.append(BorderError(Fraction(eps), largest, error))
    return rows


@dataclass(frozen=True)
class Table:
    """The rows of :func:`border_errors`."""

    rows: tuple[BorderError, ...]

    def column(self, name: str) -> np.ndarray:
        return object_array([getattr(row, name) for row in self.rows])


BORDER_ERRORS = Section(
    title="error against weight size of one head for two powers",
    instance=lambda *, domain, n: Table(tuple(border_errors(n))),
    cases=tuple(Case(f"cyclic shift, n={n}, eps = 1, 1/10, ..., 10^-6", RATIONALS, Scope.INPUT, {"n": n})
                for n in (2, 3)),
    claims=(
        Claim("border-falls", "the error falls from each eps to the next", Relation.LESS,
              lambda i: i.column("error")[1:], lambda i: i.column("error")[:-1]),
        Claim("border-positive", "it is never zero", Relation.LESS, lambda i: 0, lambda i: i.column("error")),
        Claim("border-product", "error times largest weight is the same at every eps", Relation.EQUAL,
              lambda i: i.column("error") * i.column("weight"), lambda i: i.rows[0].error * i.rows[0].weight),
    ),
    mutants=(
        Mutant("eps grows", lambda i: replace(i, rows=i.rows[::-1]), ("border-falls",)),
        Mutant("an exact head", lambda i: replace(i, rows=tuple(row._replace(error=Fraction(0)) for row in i.rows)),
               ("border-positive",)),
        Mutant("bounded weights", lambda i: replace(i, rows=tuple(row._replace(weight=Fraction(1)) for row in i.rows)),
               ("border-product",)),
    ),
)

