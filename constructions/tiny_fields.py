"""Every head over the smallest fields: one head serves one class of powers, and where that ends.

Statement. Let F be the field of p elements. A linear head on [X, I] *serves* M if one of its columns is a column of
M X for every X and M is not zero. For every head over F, and every N x N matrix A over F, the powers I, A, A^2, ...
that the head serves are multiples of one another.

"For every X" has two readings: *formally*, the two sides are the same polynomials in the entries of X; as *functions*,
they agree for X with entries in F. The second is weaker over a finite field, so that what holds for every head that
serves as a function holds formally, too. Over two elements the statement holds formally and fails for functions: there
x^2 = x, and the head in :data:`TWO_ELEMENTS` serves I and diag(0, 1).

Two more limits. The powers are powers of one matrix: the head in :data:`TWO_MATRICES` serves two matrices that are not
proportional, but they do not commute.

Checked: all heads, all value columns and all matrices A, at p = 3 as functions and at p = 2 formally. A head enters by
its matrix W_Q W_K^T, on which alone its output depends, so that every d_k is covered. The output's coefficients are
those of the layer itself: a sum over the entries of W_Q W_K^T and of the value column, with integer coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from constructions.blocks import lifted, symbols, unit_like
from constructions.degree_argument import generic_column
from iha_theory.attention import linear
from iha_theory.claims import Case, Claim, Mutant, Relation, Scope, Section
from iha_theory.layer import IHA, forward, multi_head
from iha_theory.scalars import INTEGERS, POLYNOMIALS, Domain, object_array


def _vectors(prime: int, length: int) -> np.ndarray:
    """All vectors over the field of ``prime`` elements: (prime ** length, length)."""
    return np.indices((prime,) * length).reshape(length, -1).T.astype(np.float32)


def _class(matrix: tuple[int, ...], prime: int) -> tuple[int, ...]:
    """The multiple of a matrix whose first non-zero entry is 1: two matrices are proportional if it is the same."""
    leading = next((entry for entry in matrix if entry), 1)
    inverse = pow(leading, -1, prime)
    return tuple(entry * inverse % prime for entry in matrix)


@dataclass(frozen=True)
class AllHeads:
    """All heads, all value columns and all matrices A over the field of ``prime`` elements.

    Attributes:
        n, d: tokens and features. as_functions: a head serves as a function; else formally, as polynomials.
    """

    prime: int
    n: int
    d: int
    as_functions: bool

    def _reduced(self, exponent: int) -> int:
        """x^p = x for functions on the field."""
        return (exponent - 1) % (self.prime - 1) + 1 if self.as_functions and exponent else exponent

    @cached_property
    def _coefficients(self) -> tuple[np.ndarray, list[int]]:
        """(score, value, row, monomial): the output's integer coefficients, and which monomials are X[b, f], in order.

        The output is a sum over the entries of W_Q W_K^T and of the value column, since it is linear in each.
        """
        column = generic_column(domain=POLYNOMIALS, n=self.n, d=self.d)
        model = self.n + self.d
        gens = column.output[0, 0].ring.gens
        scores = np.block([[column.b, column.c], [column.d, column.e]]).reshape(-1)
        values = np.concatenate([column.v1, column.v0])[:, 0]
        place = {name: [gens.index(symbol) for symbol in group]
                 for name, group in (("score", scores), ("value", values), ("x", column.x.reshape(-1)))}
        units = [tuple(int(i == j) for j in range(self.n * self.d)) for i in range(self.n * self.d)]
        number: dict[tuple[int, ...], int] = {monomial: index for index, monomial in enumerate(units)}
        terms: list[tuple[int, int, int, int, int]] = []
        for row, entry in enumerate(column.output[:, 0]):
            for monomial, coefficient in entry.terms():
                score, value = (next(i for i, g in enumerate(place[name]) if monomial[g])
                                for name in ("score", "value"))
                powers = tuple(self._reduced(monomial[g]) for g in place["x"])
                terms.append((score, value, row, number.setdefault(powers, len(number)), int(coefficient)))
        tensor = np.zeros((model * model, model, self.n, len(number)), dtype=np.float32)
        for score, value, row, monomial, coefficient in terms:
            tensor[score, value, row, monomial] += coefficient
        return tensor % self.prime, list(range(len(units)))

    def _modulo(self, values: np.ndarray) -> np.ndarray:
        return values.astype(np.int16) % self.prime

    @cached_property
    def served(self) -> list[frozenset[tuple[int, ...]]]:
        """For each head that serves something, the classes of matrices that it serves."""
        tensor, units = self._coefficients
        scores, values, rows, monomials = tensor.shape
        others = [monomial for monomial in range(monomials) if monomial not in units]
        heads = _vectors(self.prime, scores)
        found: dict[int, set[tuple[int, ...]]] = {}
        for column in _vectors(self.prime, values):
            # (score, row, monomial): what a head's entry adds to the coefficients of its output for this value column.
            read = np.tensordot(column, tensor, axes=(0, 1)) % self.prime
            left = np.arange(len(heads))
            for row in range(rows):
                left = left[~self._modulo(heads[left] @ read[:, row, others]).any(axis=1)]
            applied = self._modulo(heads[left] @ read[:, :, units].reshape(scores, -1))
            # (head, feature, row, token): the matrix that is applied to each feature; to serve, one is not zero.
            matrices = applied.reshape(-1, rows, self.n, self.d).transpose(0, 3, 1, 2)
            serve = matrices.any(axis=(2, 3)).sum(axis=1) == 1
            for head, matrix in zip(left[serve].tolist(), matrices[serve].sum(axis=1), strict=True):
                found.setdefault(head, set()).add(_class(tuple(matrix.ravel().tolist()), self.prime))
        return [frozenset(classes) for classes in found.values()]

    @cached_property
    def power_classes(self) -> set[frozenset[tuple[int, ...]]]:
        """For each matrix A, the classes of its non-zero powers I, A, A^2, ..., all of them."""
        identity = np.eye(self.n, dtype=int)
        found: set[frozenset[tuple[int, ...]]] = set()
        for entries in product(range(self.prime), repeat=self.n**2):
            a, power, classes = np.reshape(entries, (self.n, self.n)), identity, set()
            while power.any() and (known := _class(tuple(power.ravel().tolist()), self.prime)) not in classes:
                classes.add(known)
                power = power @ a % self.prime
            found.add(frozenset(classes))
        return found

    @property
    def most_classes(self) -> int:
        """The largest number of classes of powers of one matrix that one head serves."""
        return max((len(served & powers) for served in set(self.served) for powers in self.power_classes), default=0)


ALL_HEADS = Section(
    title="every head over a field of two or three elements",
    instance=lambda *, domain, **sizes: AllHeads(**sizes),
    cases=tuple(
        Case(f"p={p}, n={n}, d={d}, {'as functions' if functions else 'formally'}", INTEGERS, Scope.SIZE,
             {"prime": p, "n": n, "d": d, "as_functions": functions})
        for p, n, d, functions in ((2, 2, 1, False), (3, 2, 1, True), (2, 3, 1, False), (2, 2, 2, False))),
    claims=(
        Claim("one-class", "over the field of p elements one head serves at most one class of powers of one matrix, "
              "and some head serves one", Relation.EQUAL, lambda i: i.most_classes, lambda i: 1),
    ),
    mutants=(Mutant("functions over two elements", lambda i: replace(i, prime=2, as_functions=True), ("one-class",)),),
)


@dataclass(frozen=True)
class Example:
    """One head with one feature and two tokens, its input's features x (2, 1), and the two matrices that it serves."""

    weights: IHA
    x: np.ndarray
    wanted: tuple[np.ndarray, np.ndarray]
    heads: AllHeads

    @cached_property
    def output(self) -> np.ndarray:
        return self.output_of(self.x)

    def output_of(self, x: np.ndarray) -> np.ndarray:
        return forward(self.weights, np.concatenate([x, unit_like(x, 2)], axis=1), linear)

    @property
    def target(self) -> np.ndarray:
        return np.concatenate([matrix @ self.x for matrix in self.wanted], axis=1)

    def modulo(self, prime: int) -> np.ndarray:
        """Output minus target at every x over the field of ``prime`` elements: (x, entry), in 0, ..., prime - 1."""
        gaps = (self.output - self.target).ravel()
        return object_array([[int(gap.evaluate(list(zip(self.x[:, 0], point, strict=True)))) % prime for gap in gaps]
                             for point in product(range(prime), repeat=2)])


def _example(scores: list[list[int]], keys: list[list[int]], values: list[list[int]],
             wanted: tuple[list[list[int]], list[list[int]]]) -> Example:
    """The head with these query, key and value weights (rows: feature, token 0, token 1) over a ring of polynomials."""
    x = symbols({"x": (2, 1)})[0]["x"]
    w_q, w_k, w_v, first, second = (lifted(m, x) for m in (scores, keys, values, *wanted))
    return Example(multi_head(w_q[None], w_k[None], w_v[None]), x, (first, second), AllHeads(2, 2, 1, True))


def _two_elements(*, domain: Domain) -> Example:
    # D = (0, 1)^T, E = [[1, 0], [1, 0]], B = C = 0; value columns (1; 0) and (0; e_1).
    return _example([[0, 0], [1, 0], [0, 1]], [[0, 1], [1, 1], [0, 0]], [[1, 0], [0, 0], [0, 1]],
                    ([[1, 0], [0, 1]], [[0, 0], [0, 1]]))


def _two_matrices(*, domain: Domain) -> Example:
    # C = (0, 1), D = (1, 0)^T, B = E = 0; value columns (0; e_0) and (0; e_1).
    return _example([[1, 0], [0, 1], [0, 0]], [[0, 1], [0, 0], [1, 0]], [[0, 0], [1, 0], [0, 1]],
                    ([[1, 0], [0, 0]], [[1, 1], [0, 1]]))


def _two_element_output(instance: Example) -> np.ndarray:
    x0, x1 = instance.x[:, 0]
    return object_array([[x0, x0 - x0], [x0 + x0**2 + x1**2, x1]])


def _swapped(instance: Example) -> Example:
    return replace(instance, wanted=instance.wanted[:1] * 2)


TWO_ELEMENTS = Section(
    title="one head that serves two classes over two elements",
    instance=_two_elements,
    cases=(Case("n=2, d=1", POLYNOMIALS, Scope.SIZE),),
    claims=(
        Claim("two-elements-output", "the head outputs (x_0, x_0 + x_0^2 + x_1^2) and (0, x_1)", Relation.EQUAL,
              lambda i: i.output, _two_element_output),
        Claim("two-elements", "modulo 2, at every x, that is x and diag(0, 1) x: two powers of diag(0, 1)",
              Relation.EQUAL, lambda i: i.modulo(2), lambda i: 0, domain=INTEGERS),
        Claim("two-elements-formally", "as polynomials it is not", Relation.DIFFERENT, lambda i: i.output,
              lambda i: i.target),
        Claim("two-elements-most", "over two elements, as functions, some head serves more than one class",
              Relation.LESS, lambda i: 1, lambda i: i.heads.most_classes, domain=INTEGERS),
    ),
    mutants=(
        Mutant("three elements", lambda i: replace(i, heads=AllHeads(3, 2, 1, True)), ("two-elements-most",)),
        Mutant("a head that outputs it", lambda i: replace(i, weights=_two_matrices(domain=POLYNOMIALS).weights,
                                                           wanted=_two_matrices(domain=POLYNOMIALS).wanted),
               ("two-elements-formally",)),
    ),
)

TWO_MATRICES = Section(
    title="one head that serves two matrices that are not powers of one",
    instance=_two_matrices,
    cases=(Case("n=2, d=1", POLYNOMIALS, Scope.SIZE),),
    claims=(
        Claim("two-matrices", "one head outputs diag(1, 0) x and [[1, 1], [0, 1]] x", Relation.EQUAL,
              lambda i: i.output, lambda i: i.target),
        Claim("two-matrices-apart", "they are not proportional: on x they span two dimensions, one more than there are "
              "heads", Relation.DIFFERENT, lambda i: i.target[0, 0] * i.target[1, 1],
              lambda i: i.target[0, 1] * i.target[1, 0]),
        Claim("two-matrices-order", "they do not commute, so that no matrix has both as powers", Relation.DIFFERENT,
              lambda i: i.wanted[0] @ i.wanted[1], lambda i: i.wanted[1] @ i.wanted[0]),
    ),
    mutants=(Mutant("twice the same matrix", _swapped, ("two-matrices-apart", "two-matrices-order")),),
)


