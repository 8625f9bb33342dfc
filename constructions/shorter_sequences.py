"""Theorem 4 for sequences shorter than the layer is built for: what masks and zeros do, and what counts right."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from constructions.blocks import lifted, symbols
from constructions.counting import counting_mlp, filled_up
from constructions.counting_pipeline import substituted, telling_inputs, workspaces
from constructions.cpm3 import counts, every_input
from constructions.cpm3_request import OPTIONS, SYMBOLIC_N, asked
from constructions.shifts import cyclic_shifts, unread, with_positions, workspace
from iha_theory.attention import hard, padded
from iha_theory.claims import Case, Claim, Erratum, Mutant, Premise, Relation, Request, Scope, Section, Verdict
from iha_theory.count import ceil_sqrt
from iha_theory.layer import IHA, forward
from iha_theory.scalars import POLYNOMIALS, RATIONALS, Domain


@dataclass(frozen=True)
class Shorter:
    """A layer for ``n_max`` tokens and inputs (batch, n) of fewer. ``tokens`` (n_max, 1): the first n and the pads."""

    weights: IHA
    tokens: np.ndarray
    symbolic: bool
    inputs: np.ndarray
    modulus: int
    coefficients: tuple[int, ...]

    @property
    def n(self) -> int:
        return self.inputs.shape[1]

    @property
    def n_max(self) -> int:
        return self.tokens.shape[0]

    @cached_property
    def output(self) -> np.ndarray:
        """The layer's output on tokens and pads alike: (n_max, width)."""
        return forward(self.weights, with_positions(self.tokens), hard)

    def _counted(self, rows: np.ndarray, modulus: int, coefficient: int) -> np.ndarray:
        spaces = substituted(self.output, rows) if self.symbolic else workspaces(self.weights, rows)
        return counting_mlp(self.n_max, modulus, coefficient)(spaces)[:, : self.n, 0]

    def filled_up(self, coefficients: tuple[int, ...]) -> np.ndarray:
        """(coefficient, batch, token) counts of the scaled tokens, padded with 1, modulo (G + 2) M."""
        found = []
        for g in coefficients:
            rows = [filled_up(list(row), self.n_max, self.modulus, g)[0] for row in self.inputs]
            found.append(self._counted(np.array(rows, dtype=object), (g + 2) * self.modulus, g))
        return np.stack(found)

    def zero_padded(self) -> np.ndarray:
        """(coefficient, batch, token) counts of the tokens as they are, padded with 0, modulo M."""
        pads = np.zeros((len(self.inputs), self.n_max - self.n), dtype=object)
        rows = np.concatenate([self.inputs, pads], axis=1)
        return np.stack([self._counted(rows, self.modulus, g) for g in self.coefficients])

    def wanted(self, coefficients: tuple[int, ...]) -> np.ndarray:
        return np.stack([counts(self.inputs, self.modulus, g) for g in coefficients])

    @cached_property
    def masked(self) -> np.ndarray:
        """The layer's output when the pads are no keys: (n_max, width)."""
        return forward(self.weights, with_positions(self.tokens),
                       lambda q, k, v: hard(q, k, v, mask=padded(self.n)))

    @property
    def wanted_workspace(self) -> np.ndarray:
        return workspace(self.tokens, ceil_sqrt(self.n_max) ** 2)

    @cached_property
    def is_token(self) -> np.ndarray:
        """(n_max, width) Booleans: whether entry [i, c] of the workspace should hold a token and no pad."""
        return (np.add.outer(np.arange(self.n_max), np.arange(ceil_sqrt(self.n_max) ** 2)) % self.n_max) < self.n

    @property
    def masked_formula(self) -> np.ndarray:
        """What a head outputs when r of its H maximal scores are left: (H/r) x, 0 at a pad; for r = 0 the mean."""
        heads = ceil_sqrt(self.n_max)
        share = np.full((*self.is_token.shape, self.n_max), Fraction(0), dtype=object)
        for i, c in np.ndindex(*self.is_token.shape):
            block = slice(c - c % heads, c - c % heads + heads)
            hits = int(self.is_token[i, block].sum())
            if not hits:
                share[i, c, : self.n] = Fraction(1, self.n)
            elif self.is_token[i, c]:
                share[i, c, (i + c) % self.n_max] = Fraction(heads, hits)
        return (lifted(share, self.tokens) @ self.tokens)[..., 0]


def _shorter(*, domain: Domain, n_max: int, modulus: int, coefficients: tuple[int, ...], n: int = 0,
             inputs: np.ndarray | None = None) -> Shorter:
    symbolic = domain is POLYNOMIALS
    tokens = (symbols({"x": (n_max, 1)}, rational=True)[0]["x"] if symbolic
              else domain.array(np.arange(2, 2 + n_max).reshape(n_max, 1)))
    rows = every_input(n, range(modulus)) if inputs is None else inputs
    return Shorter(cyclic_shifts(n_max, like=tokens), tokens, symbolic, rows, modulus, coefficients)


def _every_residue(n_max: int, n: int, modulus: int, coefficients: tuple[int, ...], domain: Domain) -> Case:
    name = ", ".join(map(str, coefficients))
    return Case(f"N_max={n_max}, N={n}, M={modulus}, G={name}, every residue", domain, Scope.SIZE,
                {"n_max": n_max, "n": n, "modulus": modulus, "coefficients": coefficients})


def _requested(request: Request) -> tuple[Case, ...]:
    if (sizes := asked(request)) is None:
        return ()
    n_max, modulus, g = sizes.n, sizes.modulus, sizes.coefficient
    domain, count = (POLYNOMIALS, 20) if n_max <= SYMBOLIC_N else (RATIONALS, 2)
    return tuple(Case(f"N_max={n_max}, N={n}, M={modulus}, G={g}, given inputs", domain, Scope.INPUT,
                      {"n_max": n_max, "modulus": modulus, "coefficients": (g,),
                       "inputs": telling_inputs(n, modulus, count)})
                 for n in sorted({n_max // 2, n_max - 1}) if 1 <= n < n_max)


SHORTER = Section(
    title="sequences shorter than N_max",
    instance=_shorter,
    cases=(
        _every_residue(3, 2, 2, (7,), RATIONALS),
        _every_residue(2, 1, 3, (1, 2, 7, 8), POLYNOMIALS),
        *(_every_residue(n_max, n, m, (1, 2, 2 * m + 1, 2 * m + 2), POLYNOMIALS)
          for n_max, n, m in ((3, 1, 3), (3, 2, 3), (4, 1, 4), (4, 2, 3), (4, 3, 2), (5, 3, 3), (7, 5, 2))),
    ),
    premises=(
        Premise("the sequence is shorter than N_max", lambda i: i.n < i.n_max),
        Premise("the coefficient G is at least 1", lambda i: min(i.coefficients) >= 1),
    ),
    claims=(
        Claim("pads-as-tokens", "pads that are keys stand in the workspace like tokens", Relation.EQUAL,
              lambda i: i.output, lambda i: i.wanted_workspace),
        Claim("zero-coefficient", "premise: with G = 0 the padded sequence counts wrong", Relation.DIFFERENT,
              lambda i: i.filled_up((0,)), lambda i: i.wanted((0,)), domain=RATIONALS, scope=Scope.INPUT),
    ),
    errata=(
        Erratum(
            "thm4-masked-pads", "gap", "Theorems 4 and 7, sequences with N < N_max",
            "The task allows N <= N_max; the construction is given for N = N_max, and how a shorter sequence enters is "
            "left open. If the pads are masked as keys, the average runs over the r <= H maximal scores that are left: "
            "a head outputs (H/r) x in place of x, and the mean of the tokens where r = 0.",
            printed=Claim("masked-pads", "with masked pads the workspace still holds each token where it should",
                          Relation.EQUAL, lambda i: np.where(i.is_token, i.masked, i.wanted_workspace),
                          lambda i: i.wanted_workspace, Verdict.FAILS, scope=Scope.INPUT),
            corrected=(Claim("masked-formula", "with masked pads a head outputs (H/r) x, and the mean where r = 0",
                             Relation.EQUAL, lambda i: i.masked, lambda i: i.masked_formula),),
        ),
        Erratum(
            "thm4-zero-pads", "gap", "Theorems 4 and 7, sequences with N < N_max",
            "If a shorter sequence is padded with zeros, pairs with pads are counted too, and the counts are wrong. "
            "They are right, for G >= 1 and without another weight, when each token x becomes (G+2) x, each pad 1, and "
            "the modulus (G+2) M: a pair with a pad then sums to 1, G or G+1 modulo G+2 and never matches.",
            printed=Claim("zero-pads", "zero pads leave the counts as they are defined", Relation.EQUAL,
                          lambda i: i.zero_padded(), lambda i: i.wanted(i.coefficients), Verdict.FAILS,
                          domain=RATIONALS),
            corrected=(Claim("filled-up", "(G+2) x, pads 1 and modulus (G+2) M give the counts as they are defined",
                             Relation.EQUAL, lambda i: i.filled_up(i.coefficients),
                             lambda i: i.wanted(i.coefficients), domain=RATIONALS),),
        ),
    ),
    free=lambda i: unread(i.weights),
    mutants=(
        Mutant("tokens that match no pad", lambda i: replace(i, inputs=i.inputs * 0 + 1, modulus=3),
               ("zero-coefficient", "zero-pads")),
        Mutant("tokens that are all zero", lambda i: replace(i, tokens=i.tokens * 0), ("masked-pads",)),
    ),
    requested=_requested,
    options=OPTIONS,
)
