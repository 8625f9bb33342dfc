"""The layer of Theorem 4 at a finite temperature: its output for every token, and when rounding recovers the tokens.

With logits beta * {0, 1} in place of hard attention and b = e^beta, every pseudo-query has one key of weight b and
N - 1 of weight 1 among the N keys of each pseudo-head. So the layer outputs, in place of the wanted token x_s,

    x_s + (sum_n x_n - N x_s) / (b + N - 1).

The error is a sum of N - 1 differences x_n - x_s over b + N - 1. Among tokens with max - min <= D its absolute value is
at most (N-1) D / (b + N - 1), and reaches it with both signs: one token at one end, all others at the other. For
integer tokens, N >= 2 and D >= 1, rounding recovers every token of every such input exactly when that is below 1/2:

    b > (N-1)(2D-1).

At equality errors of 1/2 and of -1/2 occur, and rounding half up or half down fails on one of them. For |x| <= x_max,
D = 2 x_max. Softmax divides the scores by sqrt(d_k), so the gain on W_Q is beta sqrt(d_k), with d_k = N.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import flint
import numpy as np

from constructions.blocks import symbols
from constructions.cpm3 import every_input
from constructions.shifts import cyclic_shifts, cyclic_shifts_mha, unread, with_positions, workspace
from iha_theory.attention import FormalScore, normalized, softmax
from iha_theory.claims import Case, Claim, Mutant, Premise, Relation, Scope, Section
from iha_theory.layer import IHA, Attention, forward
from iha_theory.scalars import BALLS, POLYNOMIALS, RATIONALS, Domain, as_fraction, elementwise


def least_base(n: int, spread: int) -> int:
    """(N-1)(2D-1): rounding recovers all integer tokens with max - min <= D exactly when b = e^beta is above it."""
    return (n - 1) * (2 * spread - 1)


def warm_output(tokens: np.ndarray, columns: int, base: Any) -> np.ndarray:
    """x_s + (sum of x - N x_s) / (b + N - 1) for the wanted tokens x_s of the workspace: (n, columns)."""
    wanted, n = workspace(tokens, columns), tokens.shape[0]
    return wanted + (wanted * -n + tokens.sum()) * (1 / (base + n - 1))


@dataclass(frozen=True)
class Warm:
    """A layer, its tokens (n, 1), an attention that weighs a score of 1 by ``base`` and a score of 0 by 1."""

    weights: IHA
    tokens: np.ndarray
    base: Any
    attention: Attention

    @property
    def output(self) -> np.ndarray:
        return forward(self.weights, with_positions(self.tokens), self.attention)


def _warm(*, domain: Domain, n: int, base: Any = None, beta: Any = None, multi_head: bool = False) -> Warm:
    """Over polynomials the two weights are symbols, over balls softmax has the gain beta sqrt(d_k) on W_Q."""
    build: Callable[..., IHA] = cyclic_shifts_mha if multi_head else cyclic_shifts
    if domain is POLYNOMIALS:
        matrices, (low, high) = symbols({"x": (n, 1)}, extra=["e0", "e1"])
        weight, field = FormalScore([low, high]), low.ring.to_field()
        for score in (low - low, low - low + 1):
            weight(score)
        return Warm(build(n, like=matrices["x"]), matrices["x"], field(high) / field(low), normalized(weight))
    tokens = domain.array(np.arange(2, 2 + n).reshape(n, 1) ** 2)
    weights = build(n, like=tokens)
    if domain is BALLS:
        gain = flint.arb(beta) * flint.arb(n).sqrt()
        return Warm(replace(weights, w_q=weights.w_q * gain), tokens, flint.arb(beta).exp(), softmax())
    return Warm(weights, tokens, RATIONALS.element(base), softmax(base=base))


OUTPUT = Section(
    title="the output at a finite temperature",
    instance=_warm,
    cases=(
        Case("N=2, tokens 4, 9, b=7/2", RATIONALS, Scope.INPUT, {"n": 2, "base": Fraction(7, 2)}),
        *(Case(f"N={n}, every token, every temperature", POLYNOMIALS, Scope.SIZE, {"n": n}) for n in (1, 2, 3, 4)),
        Case("N=3, multi-head attention, every token, every temperature", POLYNOMIALS, Scope.SIZE,
             {"n": 3, "multi_head": True}),
        Case("N=9, tokens 4, ..., 100, b=20", RATIONALS, Scope.INPUT, {"n": 9, "base": 20}),
        Case("N=4, tokens 4, ..., 25, beta=3, gain beta sqrt(d_k)", BALLS, Scope.INPUT, {"n": 4, "beta": 3}),
    ),
    claims=(
        Claim("warm-output", "the layer outputs x_s + (sum of x - N x_s) / (b + N - 1)", Relation.EQUAL,
              lambda i: i.output, lambda i: warm_output(i.tokens, i.output.shape[1], i.base)),
    ),
    premises=(Premise("the input has the length that the layer is built for",
                      lambda i: i.weights.sizes["model"] == 1 + i.tokens.shape[0]),),
    free=lambda i: unread(i.weights),
    mutants=(Mutant("b + 1 for b", lambda i: replace(i, base=i.base + 1), ("warm-output",)),),
)


@dataclass(frozen=True)
class Rounding:
    """A layer, all inputs (batch, n) of integers from 0 to ``spread``, and how far from the threshold b is taken.

    A layer whose output follows ``warm-output`` commutes with adding a constant to all tokens, so these inputs stand
    for all integer tokens with max - min <= spread.
    """

    weights: IHA
    inputs: np.ndarray
    spread: int
    margin: Fraction

    @property
    def n(self) -> int:
        return self.inputs.shape[1]

    @property
    def threshold(self) -> int:
        return least_base(self.n, self.spread)

    def output(self, base: Any) -> np.ndarray:
        """(batch, token, column) at the rational base b."""
        return np.stack([forward(self.weights, with_positions(RATIONALS.array(row.reshape(-1, 1))), softmax(base=base))
                         for row in self.inputs])

    def rounded(self, base: Any) -> np.ndarray:
        return elementwise(lambda value: (as_fraction(value) + Fraction(1, 2)) // 1, self.output(base))

    @cached_property
    def wanted(self) -> np.ndarray:
        columns = self.weights.sizes["out"] * self.weights.sizes["value"]
        return np.stack([workspace(row.reshape(-1, 1), columns) for row in self.inputs])

    @cached_property
    def errors(self) -> np.ndarray:
        """Output minus wanted token at b = (N-1)(2D-1)."""
        return self.output(self.threshold) - self.wanted


def _rounding(*, domain: Domain, n: int, spread: int, multi_head: bool = False) -> Rounding:
    build: Callable[..., IHA] = cyclic_shifts_mha if multi_head else cyclic_shifts
    return Rounding(build(n), every_input(n, range(spread + 1)), spread, Fraction(1, 1000))


def _every_input(n: int, spread: int, **layer: bool) -> Case:
    name = ", multi-head attention" if layer else ""
    return Case(f"N={n}, D={spread}{name}, every input", RATIONALS, Scope.SIZE, {"n": n, "spread": spread} | layer)


ROUNDING = Section(
    title="the exact threshold for rounding",
    instance=_rounding,
    cases=(_every_input(2, 2, multi_head=True),
           *(_every_input(n, d) for n, d in ((2, 1), (2, 3), (3, 1), (3, 2), (4, 1)))),
    premises=(Premise("at least two tokens, and max - min at least 1: else there is nothing to confuse",
                      lambda i: i.n >= 2 and i.spread >= 1),),
    claims=(
        Claim("rounding-above", "rounding recovers every token when b is just above (N-1)(2D-1)", Relation.EQUAL,
              lambda i: i.rounded(i.threshold + i.margin), lambda i: i.wanted),
        Claim("rounding-below", "rounding loses a token of some input when b is just below (N-1)(2D-1)",
              Relation.DIFFERENT, lambda i: i.rounded(i.threshold - i.margin), lambda i: i.wanted),
        Claim("rounding-at", "at b = (N-1)(2D-1) the errors run from -1/2 to 1/2", Relation.EQUAL,
              lambda i: np.array([i.errors.min(), i.errors.max()], dtype=object),
              lambda i: RATIONALS.array(np.array([Fraction(-1, 2), Fraction(1, 2)], dtype=object))),
    ),
    free=lambda i: unread(i.weights),
    mutants=(
        Mutant("below for above", lambda i: replace(i, margin=-i.margin), ("rounding-above", "rounding-below")),
        Mutant("a spread too large by 1", lambda i: replace(i, spread=i.spread + 1), ("rounding-at", "rounding-below")),
    ),
)
