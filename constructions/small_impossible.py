"""Small impossible banks, by Gröbner bases: an independent judge of the lower bounds.

Statement. A layer whose weights are unknown outputs given matrices times X, for every X, exactly if the coefficients of
the monomials in X agree: a system of polynomial equations in the weights. If its Gröbner basis over the rationals is
[1], it has no solution, over no field that contains the rationals; if the basis is not [1], it has a complex one.

Premises of each system, none of which loses a layer:

* one head, any weights: the unknowns are the entries of W_Q W_K^T, on which alone the output depends, and one value
  column for each wanted column. With one head the output conventions are the same, with or without a projection.
* a wanted matrix may itself be unknown: then the equations say that the column is some matrix A times X, and one more
  unknown t says that A is not a multiple of the identity: t times an entry off the diagonal, or times a difference of
  two diagonal entries, is 1.
* heads that read positions only, with a projection: the constant part of a value column contributes what the output
  is at X = 0, which is 0, so that values read the features only, and head h is an N x N matrix E_h.
* IHA with one head that reads positions only, H = 1: the unknowns are E = W_Q W_K^T, the value columns and the mixing.

Where only some tokens carry features, the others are 0: fewer equations, so that [1] says more.

Checked: each system below, with a twin that is possible and whose basis is not [1].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sympy import QQ, grevlex
from sympy.polys.groebnertools import groebner
from sympy.polys.rings import ring

from constructions.blocks import lifted, symbols, unit_like, zeros_like
from constructions.degree_argument import head_of_scores
from iha_theory.attention import linear
from iha_theory.claims import Case, Claim, Mutant, Relation, Scope, Section
from iha_theory.layer import IHA, MIXING, forward, multi_head
from iha_theory.scalars import POLYNOMIALS, Domain, object_array

Matrix = tuple[tuple[int, ...], ...]
#: A condition on an unknown 2 x 2 matrix A under which A is not a multiple of the identity: this is not 0.
Condition = Callable[[np.ndarray], Any]

IDENTITY: Matrix = ((1, 0), (0, 1))
SWAP: Matrix = ((0, 1), (1, 0))
TWICE: Matrix = ((2, 0), (0, 2))
SHEAR: Matrix = ((1, 1), (0, 1))
SHEAR_TWICE: Matrix = ((1, 2), (0, 1))
CORNER: Matrix = ((1, 0), (0, 0))
CYCLE: tuple[Matrix, ...] = (((1, 0, 0), (0, 1, 0), (0, 0, 1)), ((0, 1, 0), (0, 0, 1), (1, 0, 0)),
                             ((0, 0, 1), (1, 0, 0), (0, 1, 0)))
PROJECTION: Matrix = ((1, 0, 0), (1, 0, 0), (0, 0, 0))


@dataclass(frozen=True)
class System:
    """The equations that say that a layer outputs ``wanted`` times X, for every X.

    Attributes:
        layer: from matrices of symbols by name to the layer and its projection (None for none).
        unknowns: names and shapes of these matrices, in the order in which the basis eliminates them.
        wanted: a matrix for each output column; a condition stands for an unknown one.
        features: the tokens that carry a feature; the others are 0. d = 1.
        possible: what is claimed of the system.
    """

    layer: Callable[[dict[str, np.ndarray]], tuple[IHA, np.ndarray | None]]
    unknowns: dict[str, tuple[int, int]]
    wanted: tuple[Matrix | Condition, ...]
    n: int
    features: tuple[int, ...]
    possible: bool = False

    @cached_property
    def equations(self) -> list[Any]:
        """Polynomials over the rationals in the unknowns and t: all vanish exactly if the layer does it."""
        letters, _ = symbols({"x": (len(self.features), 1), **self.unknowns}, rational=True)
        x = zeros_like(letters["x"], (self.n, 1))
        x[list(self.features)] = letters["x"]
        weights, projection = self.layer(letters)
        output = forward(weights, np.concatenate([x, unit_like(x, self.n)], axis=1), linear)
        output = output if projection is None else output @ projection
        first = len(self.features)
        names = [str(symbol) for symbol in letters["x"][0, 0].ring.symbols[first:]]
        target_ring, *generators = ring([*names, "t"], QQ, grevlex)
        found: list[Any] = []
        for column, wanted in enumerate(self.wanted):
            split = [_coefficients(entry, first, target_ring) for entry in output[:, column]]
            linear_part = np.full((self.n, self.n), target_ring.zero, dtype=object)
            for row, token in np.ndindex(self.n, first):
                unit = tuple(int(i == token) for i in range(first))
                linear_part[row, self.features[token]] = split[row].pop(unit, target_ring.zero)
            found += [equation for row in split for equation in row.values()]
            if callable(wanted):
                found.append(wanted(linear_part) * generators[-1] - 1)
            else:
                gap = (linear_part - lifted(wanted, linear_part))[:, list(self.features)]
                found += [equation for equation in gap.flat if equation != 0]
        return found

    @cached_property
    def basis(self) -> np.ndarray:
        """The reduced Gröbner basis over the rationals, in graded reverse lexicographic order."""
        equations = self.equations
        return object_array(groebner(equations, equations[0].ring, method="buchberger"))


def _coefficients(polynomial: Any, first: int, target: Any) -> dict[tuple[int, ...], Any]:
    """The coefficients, in ``target``, of a polynomial's monomials in the first generators."""
    found: dict[tuple[int, ...], Any] = {}
    for monomial, coefficient in polynomial.terms():
        rest = (*monomial[first:], 0)
        found.setdefault(monomial[:first], target.zero)[rest] = coefficient
    return found


def _any_head(letters: dict[str, np.ndarray]) -> tuple[IHA, None]:
    return head_of_scores(letters["score"], letters["value"].T), None


def one_head(*, domain: Domain, wanted: tuple[Matrix | Condition, ...], n: int = 2, possible: bool = False) -> System:
    """One head with any weights, for every X."""
    unknowns = {"score": (n + 1, n + 1), "value": (len(wanted), n + 1)}
    return System(_any_head, unknowns, wanted, n, tuple(range(n)), possible)


def projected_heads(*, domain: Domain, wanted: tuple[Matrix, ...], heads: int, n: int,
                    features: tuple[int, ...], possible: bool = False) -> System:
    """Heads that read positions only, with a projection."""

    def layer(letters: dict[str, np.ndarray]) -> tuple[IHA, np.ndarray]:
        w_q, w_k, w_v = (zeros_like(letters["x"], (heads, n + 1, width)) for width in (n, n, 1))
        w_q[:, 1:] = letters["operator"].reshape(heads, n, n)
        w_k[:, 1:] = unit_like(letters["x"], n)
        w_v[:, 0] = unit_like(letters["x"], 1)[0]
        return multi_head(w_q, w_k, w_v), letters["projection"]

    unknowns = {"operator": (heads * n, n), "projection": (heads, len(wanted))}
    return System(layer, unknowns, wanted, n, features, possible)


def one_iha_head(*, domain: Domain, wanted: tuple[Matrix, ...], pseudo_heads: int, possible: bool = False) -> System:
    """IHA with one head that reads positions only, for two tokens: each wanted column is one column of the head."""

    def layer(letters: dict[str, np.ndarray]) -> tuple[IHA, None]:
        w_q, w_k = zeros_like(letters["x"], (1, 3, 2)), zeros_like(letters["x"], (1, 3, 2))
        w_q[0, 1:], w_k[0, 1:] = letters["operator"], unit_like(letters["x"], 2)
        mixing = {name: letters[name][None] for name in MIXING}
        return IHA(w_q, w_k, letters["value"].T[None], **mixing), None

    mixing = dict.fromkeys(MIXING, (1, pseudo_heads))
    return System(layer, {"operator": (2, 2), "value": (len(wanted), 3), **mixing}, wanted, 2, (0, 1), possible)


def _claims(name: str, says: str) -> tuple[Claim, ...]:
    return (
        Claim(f"{name}-impossible", f"{says}: the Gröbner basis of the coefficient equations is [1]", Relation.EQUAL,
              lambda i: i.basis, lambda i: i.basis[0].ring.one, applies=lambda i: not i.possible),
        Claim(f"{name}-possible", "the basis of the possible twin is not [1]", Relation.DIFFERENT,
              lambda i: i.basis, lambda i: i.basis[0].ring.one, applies=lambda i: i.possible),
    )


def _wanting(*wanted: Matrix) -> Callable[[System], System]:
    return lambda instance: replace(instance, wanted=wanted)


def _case(name: str, scope: Scope = Scope.GRAPH, **parameters: Any) -> Case:
    return Case(name, POLYNOMIALS, scope, parameters)


ONE_HEAD = Section(
    title="one head, any weights",
    instance=one_head,
    cases=(
        _case("n=2, d=1: diag(1,0) x and [[1,1],[0,1]] x", wanted=(CORNER, SHEAR), possible=True),
        _case("n=2, d=1: [x, Ax], any A with A[0,1] != 0", Scope.SIZE, wanted=(IDENTITY, lambda a: a[0, 1])),
        _case("n=2, d=1: [x, Ax], any A with A[1,0] != 0", Scope.SIZE, wanted=(IDENTITY, lambda a: a[1, 0])),
        _case("n=2, d=1: [x, Ax], any A with A[0,0] != A[1,1]", Scope.SIZE,
              wanted=(IDENTITY, lambda a: a[0, 0] - a[1, 1])),
        _case("n=2, d=1: [Ax, A^2 x], A = [[1,1],[0,1]]", wanted=(SHEAR, SHEAR_TWICE)),
        _case("n=3, d=1: [x, Ax], cyclic shift", wanted=CYCLE[:2], n=3),
    ),
    claims=_claims("one-head", "one head does not serve two powers that are not proportional"),
    mutants=(Mutant("matrices that are not powers of one", _wanting(CORNER, SHEAR), ("one-head-impossible",)),
             Mutant("I and a swap", _wanting(IDENTITY, SWAP), ("one-head-possible",))),
)

PROJECTED_HEADS = Section(
    title="heads that read positions only, with a projection",
    instance=projected_heads,
    cases=(
        _case("n=2, d=1, H=1: [x, Ax], A a swap", wanted=(IDENTITY, SWAP), heads=1, n=2, features=(0, 1)),
        _case("n=2, d=1, H=1: [x, Ax], A = 2I", wanted=(IDENTITY, TWICE), heads=1, n=2, features=(0, 1), possible=True),
        _case("n=2, d=1, H=2: [x, Ax], A a swap", wanted=(IDENTITY, SWAP), heads=2, n=2, features=(0, 1),
              possible=True),
        _case("n=3, d=1, H=2: [x, Ax, A^2 x], cyclic shift, x_0 alone", wanted=CYCLE, heads=2, n=3, features=(0,)),
        _case("n=3, d=1, H=2: [x, Ax, A^2 x], A a projection, x_0 alone", wanted=(CYCLE[0], PROJECTION, PROJECTION),
              heads=2, n=3, features=(0,), possible=True),
    ),
    claims=_claims("projected", "fewer heads than independent powers do not suffice"),
    mutants=(Mutant("A = 2I", _wanting(IDENTITY, TWICE), ("projected-impossible",)),
             Mutant("A a swap", _wanting(IDENTITY, SWAP), ("projected-possible",))),
)

ONE_IHA_HEAD = Section(
    title="IHA with one head",
    instance=one_iha_head,
    cases=(
        *(_case(f"n=2, d=1, H=1, P={p}: [x, Ax], A a swap", wanted=(IDENTITY, SWAP), pseudo_heads=p)
          for p in (1, 2, 3)),
        _case("n=2, d=1, H=1, P=2: [x, Ax], A = 2I", wanted=(IDENTITY, TWICE), pseudo_heads=2, possible=True),
    ),
    claims=_claims("one-iha-head", "H^2 = 1 is less than two independent powers"),
    mutants=(Mutant("A = 2I", _wanting(IDENTITY, TWICE), ("one-iha-head-impossible",)),
             Mutant("A a swap", _wanting(IDENTITY, SWAP), ("one-iha-head-possible",))),
)
