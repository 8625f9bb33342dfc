"""Why one head serves one class of powers: the output of a linear head, degree by degree in the features.

Statement. The scores of a linear head on [X, I] are, with B = Q1 K1^T, C = Q1 K0^T, D = Q0 K1^T, E = Q0 K0^T for query
and key weights [Q1; Q0] and [K1; K0],

    S(X) = X B X^T + X C + D X^T + E,

and the output column of a value column (v1; v0) is S(X)(X v1 + v0). It is a column of M X for every X only if its parts
of degree 0, 2 and 3 vanish, and its part of degree 1 is then that column. The parts are the identities checked here.

The argument that they serve, for N >= 2 tokens and a column that is not zero. Rows of X are x_a, and a is not b.

* degree 3: row a contains (x_a^T B x_b)(x_b . v1), of degree 1 in x_a and 2 in x_b. So v1 != 0 gives B = 0, since the
  product of two non-zero polynomials is not zero.
* degree 2: row a contains (x_b . v1)(x_a . C_b) + v0[b] x_a^T B x_b, of degree 1 in each of x_a and x_b, and
  (x_b . v1)(D_a . x_b), of degree 2 in x_b. So v1 != 0 gives C = 0 and D = 0, and v1 = 0, v0 != 0 gives B = 0.
* degree 1: feature f is multiplied by (C v0)[f] I + D_f v0^T + v1[f] E, D_f the f-th column of D. With v1 != 0 that is
  a multiple of E, the same E for every column. With v1 = 0 it is g I + p v0^T, and a feature that must not count gives
  g I = -p v0^T, so g = 0: g^2 is a combination of the entries of g I + p v^T.
* two powers g I + p v^T and e I + p w^T of one matrix commute, so (v . p) w = (w . p) v. If v and w were independent,
  v . p = w . p = 0 and (I + p u^T)^m = I + m p u^T: then roots of the two powers, or their nilpotency, contradict it.

The bound for heads that share a projection reads the same parts with one feature, d = 1, summed over the heads.

Checked: each of these identities, with every number a symbol, for N = 2, 3 tokens and d = 1, 2 features. Not checked
here: the conclusions that are drawn from them, for all sizes (see :mod:`constructions.tiny_fields` for all heads over
small fields, and :mod:`constructions.small_impossible` for Gröbner bases).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from math import comb
from typing import Any

import numpy as np

from constructions.blocks import symbols, unit_like
from iha_theory.attention import linear
from iha_theory.claims import Case, Claim, Mutant, Relation, Scope, Section
from iha_theory.layer import IHA, forward, multi_head
from iha_theory.scalars import POLYNOMIALS, Domain, elementwise, object_array


def head_of_scores(matrix: np.ndarray, values: np.ndarray) -> IHA:
    """The head with W_Q W_K^T = ``matrix`` (model, model) and value weights (model, value): W_Q = I, W_K = matrix^T.

    What a linear head outputs depends on the product W_Q W_K^T alone, so that these are all heads, of every d_k.
    """
    return multi_head(unit_like(matrix, matrix.shape[0])[None], matrix.T[None], values[None])


def part(polynomial: Any, degrees: Sequence[tuple[Sequence[Any], int]]) -> Any:
    """The terms of a polynomial that have, in each of the given sets of generators, exactly the given degree."""
    wanted = [([polynomial.ring.gens.index(symbol) for symbol in group], degree) for group, degree in degrees]
    found = polynomial.ring.zero
    for monomial, coefficient in polynomial.terms():
        if all(sum(monomial[index] for index in group) == degree for group, degree in wanted):
            found[monomial] = coefficient
    return found


@dataclass(frozen=True)
class Column:
    """One output column of a linear head on [X, I]: the head, its four blocks and its value column as symbols, and X.

    ``b`` (d, d), ``c`` (d, n), ``d`` (n, d), ``e`` (n, n), ``v1`` (d, 1), ``v0`` (n, 1), ``x`` (n, d).
    """

    weights: IHA
    b: np.ndarray
    c: np.ndarray
    d: np.ndarray
    e: np.ndarray
    v1: np.ndarray
    v0: np.ndarray
    x: np.ndarray

    @property
    def n(self) -> int:
        return self.x.shape[0]

    @cached_property
    def output(self) -> np.ndarray:
        """The head's column: (n, 1)."""
        return forward(self.weights, np.concatenate([self.x, unit_like(self.x, self.n)], axis=1), linear)

    def of_degree(self, degree: int) -> np.ndarray:
        """The part of the output of that degree in X: (n, 1)."""
        return elementwise(lambda entry: part(entry, [(list(self.x.flat), degree)]), self.output)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Two different tokens a and b, in every order."""
        return list(permutations(range(self.n), 2))

    def of_rows(self, degree_a: int, degree_b: int) -> np.ndarray:
        """For each pair of tokens, what row a of the output has of these degrees in x_a and x_b and 0 in the others."""
        found = []
        for a, b in self.pairs:
            others = [list(self.x[row]) for row in range(self.n) if row not in (a, b)]
            degrees = [(list(self.x[a]), degree_a), (list(self.x[b]), degree_b), *((row, 0) for row in others)]
            found.append(part(self.output[a, 0], degrees))
        return object_array(found)

    def over_pairs(self, term: Any) -> np.ndarray:
        """``term`` of every pair of tokens."""
        return object_array([term(a, b) for a, b in self.pairs])

    @property
    def linear_coefficients(self) -> np.ndarray:
        """(feature, row, token): the coefficient of X[token, feature] in that row of the output, a polynomial."""
        gens = self.output[0, 0].ring.gens
        places = {gens.index(symbol): index for index, symbol in np.ndenumerate(self.x)}
        found = np.full((self.x.shape[1], self.n, self.n), self.output[0, 0].ring.zero, dtype=object)
        for row, entry in enumerate(self.of_degree(1)[:, 0]):
            for monomial, coefficient in entry.terms():
                generator = next(i for i in places if monomial[i])
                token, feature = places[generator]
                rest = tuple(0 if i == generator else power for i, power in enumerate(monomial))
                found[feature, row, token] = found[feature, row, token] + entry.ring({rest: coefficient})
        return found

    @property
    def operators(self) -> np.ndarray:
        """(feature, row, token): (C v0)[f] I + D_f v0^T + v1[f] E."""
        identity, scale = unit_like(self.x, self.n), self.c @ self.v0
        return np.stack([identity * scale[f, 0] + self.d[:, [f]] @ self.v0.T + self.e * self.v1[f, 0]
                         for f in range(self.x.shape[1])])


def generic_column(*, domain: Domain, n: int, d: int) -> Column:
    """The column of a head all of whose numbers are symbols, X included."""
    shapes = {"b": (d, d), "c": (d, n), "d": (n, d), "e": (n, n), "v1": (d, 1), "v0": (n, 1), "x": (n, d)}
    s, _ = symbols(shapes)
    matrix = np.block([[s["b"], s["c"]], [s["d"], s["e"]]])
    return Column(head_of_scores(matrix, np.concatenate([s["v1"], s["v0"]])), **s)


DEGREES = Section(
    title="the output of a linear head, degree by degree",
    instance=generic_column,
    cases=tuple(Case(f"symbolic, n={n}, d={d}", POLYNOMIALS, Scope.SIZE, {"n": n, "d": d})
                for n, d in ((2, 1), (2, 2), (3, 1), (3, 2))),
    claims=(
        Claim("degree-3", "the part of degree 3 is X B X^T X v1", Relation.EQUAL, lambda i: i.of_degree(3),
              lambda i: i.x @ i.b @ i.x.T @ i.x @ i.v1),
        Claim("degree-2", "the part of degree 2 is X B X^T v0 + (X C + D X^T) X v1", Relation.EQUAL,
              lambda i: i.of_degree(2), lambda i: i.x @ i.b @ i.x.T @ i.v0 + (i.x @ i.c + i.d @ i.x.T) @ i.x @ i.v1),
        Claim("degree-1", "the part of degree 1 is (X C + D X^T) v0 + E X v1", Relation.EQUAL,
              lambda i: i.of_degree(1), lambda i: (i.x @ i.c + i.d @ i.x.T) @ i.v0 + i.e @ i.x @ i.v1),
        Claim("degree-0", "the part of degree 0 is E v0", Relation.EQUAL, lambda i: i.of_degree(0),
              lambda i: i.e @ i.v0),
        Claim("degree-operator", "to feature f the part of degree 1 applies (C v0)[f] I + D_f v0^T + v1[f] E",
              Relation.EQUAL, lambda i: i.linear_coefficients, lambda i: i.operators),
        Claim("rows-1-2", "row a has (x_a^T B x_b)(x_b . v1), of degree 1 in x_a and 2 in x_b", Relation.EQUAL,
              lambda i: i.of_rows(1, 2), lambda i: i.over_pairs(
                  lambda a, b: (i.x[a] @ i.b @ i.x[b]) * (i.x[b] @ i.v1[:, 0]))),
        Claim("rows-1-1", "row a has (x_b . v1)(x_a . C_b) + v0[b] x_a^T B x_b, of degree 1 in x_a and in x_b",
              Relation.EQUAL, lambda i: i.of_rows(1, 1), lambda i: i.over_pairs(
                  lambda a, b: (i.x[b] @ i.v1[:, 0]) * (i.x[a] @ i.c[:, b]) + i.v0[b, 0] * (i.x[a] @ i.b @ i.x[b]))),
        Claim("rows-0-2", "row a has (x_b . v1)(D_a . x_b), of degree 2 in x_b alone", Relation.EQUAL,
              lambda i: i.of_rows(0, 2), lambda i: i.over_pairs(
                  lambda a, b: (i.x[b] @ i.v1[:, 0]) * (i.d[a] @ i.x[b]))),
    ),
)


@dataclass(frozen=True)
class Perturbed:
    """Multiples of the identity, each with a matrix of rank one added.

    ``first`` is g I + p v^T, ``second`` is e I + p w^T, ``unipotent`` is I + p v^T; ``p``, ``v``, ``w`` are (n, 1).
    """

    g: Any
    p: np.ndarray
    v: np.ndarray
    w: np.ndarray
    first: np.ndarray
    second: np.ndarray
    unipotent: np.ndarray

    @property
    def commutator(self) -> np.ndarray:
        return self.first @ self.second - self.second @ self.first

    def dot(self, left: np.ndarray, right: np.ndarray) -> Any:
        """The sum of products of two columns' entries."""
        return (left.T @ right)[0, 0]

    @property
    def minor(self) -> Any:
        """A combination of the entries of ``first`` that is g^2."""
        m, p, v = self.first, self.p[:, 0], self.v[:, 0]
        return m[0, 0] * m[1, 1] - m[0, 0] * p[1] * v[1] - m[1, 1] * p[0] * v[0] + m[0, 1] * m[1, 0]

    def power(self, exponent: int) -> np.ndarray:
        """(I + p v^T)^exponent, multiplied out."""
        result = self.unipotent
        for _ in range(exponent - 1):
            result = result @ self.unipotent
        return result

    def expansion(self, exponent: int) -> np.ndarray:
        """I + (m + C(m,2) t + C(m,3) t^2 + ...) p v^T, t = v . p."""
        t = self.dot(self.v, self.p)
        factor = sum((t**power * comb(exponent, power + 1) for power in range(1, exponent)), t - t + exponent)
        return unit_like(self.p, self.p.shape[0]) + self.p @ self.v.T * factor


def _perturbed(*, domain: Domain, n: int) -> Perturbed:
    s, (g, e) = symbols({"p": (n, 1), "v": (n, 1), "w": (n, 1)}, extra=["g", "e"])
    identity = unit_like(s["p"], n)
    return Perturbed(g, s["p"], s["v"], s["w"], identity * g + s["p"] @ s["v"].T, identity * e + s["p"] @ s["w"].T,
                     identity + s["p"] @ s["v"].T)


_EXPONENTS = (1, 2, 3, 4)
RANK_ONE = Section(
    title="a multiple of the identity and a matrix of rank one",
    instance=_perturbed,
    cases=tuple(Case(f"symbolic, n={n}", POLYNOMIALS, Scope.SIZE, {"n": n}) for n in (2, 3)),
    claims=(
        Claim("rank-one-scalar", "g^2 is a combination of the entries of g I + p v^T: if that vanishes, so does g",
              Relation.EQUAL, lambda i: i.minor, lambda i: i.g * i.g),
        Claim("rank-one-commutator", "g I + p v^T and e I + p w^T commute up to (v . p) p w^T - (w . p) p v^T",
              Relation.EQUAL, lambda i: i.commutator,
              lambda i: i.p @ i.w.T * i.dot(i.v, i.p) - i.p @ i.v.T * i.dot(i.w, i.p)),
        Claim("rank-one-unipotent", "(I + p v^T)^m is I + (m + C(m,2) t + C(m,3) t^2 + ...) p v^T with t = v . p, for "
              "m up to 4: I + m p v^T when v . p = 0", Relation.EQUAL,
              lambda i: np.stack([i.power(m) for m in _EXPONENTS]),
              lambda i: np.stack([i.expansion(m) for m in _EXPONENTS])),
    ),
    mutants=(
        Mutant("no rank one", lambda i: replace(i, first=unit_like(i.p, i.p.shape[0]) * i.g),
               ("rank-one-commutator", "rank-one-scalar")),
        Mutant("p v^T transposed", lambda i: replace(i, unipotent=unit_like(i.p, i.p.shape[0]) + i.v @ i.p.T),
               ("rank-one-unipotent",)),
    ),
)
