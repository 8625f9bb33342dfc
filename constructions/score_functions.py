"""Shared brick of the softmax theorems: a positive function of the score, in the scalars of a case.

An attention row averages the values with the weights E(s) of its scores s. The domain of a case decides what E
is, and so what an equality of outputs says:

===========  ==========================================  ==================================================
domain       E                                           an equality of outputs
===========  ==========================================  ==================================================
polynomials  a formal function, a symbol for each score  holds for every positive E, the exponential too
rationals    2 ** s, for integer scores s                holds exactly, for these numbers and this base
balls        exp(s / sqrt d_k), as in Algorithm 1        is not refuted: the two enclosures overlap
===========  ==========================================  ==================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from random import Random
from typing import Any

import flint
import numpy as np
from einops import einsum

from constructions.blocks import symbols
from iha_theory.attention import FormalScore, Mask, normalized, softmax
from iha_theory.claims import Case, Scope
from iha_theory.layer import Attention
from iha_theory.scalars import BALLS, POLYNOMIALS, RATIONALS, Domain

BASE = 2
_NAMES = {POLYNOMIALS: "any score function", RATIONALS: f"base {BASE}", BALLS: "softmax"}
_LETTERS = {"n": "n", "d": "D", "key": "d_k", "value": "d_v", "heads": "H", "pseudo_heads": "P"}


@dataclass(frozen=True)
class ScoreFunction:
    """A positive function ``weight`` of the score, and ``attention``, from a mask (or None) to the operator."""

    weight: Callable[[Any], Any]
    attention: Callable[[Mask | None], Attention]

    def scaled(self, score: Any, numerator: int, denominator: int) -> Any:
        """E(score) times a positive fraction."""
        return in_field(self.weight(score)) * numerator / denominator

    def balance(self, score: Any, ahead: int = 1, behind: int = 1) -> Any:
        """(a E(s) - b E(-s)) / (a E(s) + b E(-s)), a = ``ahead`` and b = ``behind``; tanh s for exp and a = b."""
        plus, minus = self.weight(score) * ahead, self.weight(-score) * behind
        return quotient(plus - minus, plus + minus)


@dataclass(frozen=True)
class Exponential(ScoreFunction):
    """E(s) = exp(s factor) over balls; ``scaled`` and ``balance`` are written with logarithms and tanh."""

    factor: flint.arb

    def scaled(self, score: Any, numerator: int, denominator: int) -> flint.arb:
        """E(score) times a positive fraction, as exp(score factor + log fraction)."""
        return (score * self.factor + (flint.arb(numerator) / denominator).log()).exp()

    def balance(self, score: Any, ahead: int = 1, behind: int = 1) -> flint.arb:
        """tanh(s factor + log(a / b) / 2); 1 where b = 0."""
        if behind == 0:
            return flint.arb(1)
        return (score * self.factor + (flint.arb(ahead) / behind).log() / 2).tanh()


def score_function(domain: Domain, key: int, formal: list[Any]) -> ScoreFunction:
    """The score function of a domain (see the table above).

    Args:
        domain: polynomials, rationals or balls. key: d_k, for the scale of the balls.
        formal: ring generators that occur in no score, one for each distinct score; for polynomials only.

    Raises:
        TypeError: another domain.
    """
    if domain is POLYNOMIALS:
        weight = FormalScore(list(formal))
        return ScoreFunction(weight, lambda mask: normalized(weight, mask=mask))
    if domain is RATIONALS:
        return ScoreFunction(_power, lambda mask: softmax(base=BASE, mask=mask))
    if domain is BALLS:
        factor = 1 / flint.arb(key).sqrt()
        return Exponential(lambda score: (score * factor).exp(), lambda mask: softmax(mask=mask), factor)
    raise TypeError(f"score_function: got {domain.name}; wanted polynomials, rationals or balls")


def _power(score: flint.fmpq) -> flint.fmpq:
    if score.q != 1:
        raise TypeError(f"a rational base wants integer scores; got {score}")
    return flint.fmpq(BASE) ** int(score.p)


def in_field(element: Any) -> Any:
    """A polynomial as an element of the field of fractions of its ring; any other scalar as it stands."""
    ring = getattr(element, "ring", None)
    return element if ring is None else ring.to_field()(element)


def quotient(numerator: Any, denominator: Any) -> Any:
    """numerator / denominator in the field that the scalars belong to."""
    return in_field(numerator) / in_field(denominator)


def average(weight: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Weighted averages: weights (head, token, seen) and values (head, seen, value) to (head, token, value)."""
    sums = einsum(weight, values, "head token seen, head seen value -> head token value")
    return np.frompyfunc(quotient, 2, 1)(sums, weight.sum(axis=2)[..., None])


def drawn(domain: Domain, shapes: Mapping[str, tuple[int, ...]], *, scores: int = 0, seed: int = 0,
          ) -> tuple[dict[str, np.ndarray], list[Any]]:
    """Arrays of the given shapes: independent symbols over the polynomials, else small numbers, none of them 0.

    Over the rationals they are integers of absolute value 1 or 2, as a rational base wants; over balls quarters
    of these, so that no softmax saturates.

    Args:
        scores: how many further generators to make for a formal score function; for polynomials only.
        seed: of the numbers.

    Returns:
        the arrays by name, and the further generators (none where there are no symbols).
    """
    if domain is POLYNOMIALS:
        sizes = {name: (1, prod(shape)) for name, shape in shapes.items()}
        flat, formal = symbols(sizes, rational=True, extra=[f"E{i}" for i in range(scores)])
        return {name: flat[name].reshape(shape) for name, shape in shapes.items()}, formal
    source, unit = Random(seed), Fraction(1, 4) if domain is BALLS else Fraction(1)
    arrays = {}
    for name, shape in shapes.items():
        values = np.empty(prod(shape), dtype=object)
        values[:] = [(-2, -1, 1, 2)[int(4 * source.random())] * unit for _ in values]
        arrays[name] = domain.array(values.reshape(shape))
    return arrays, []


def case(domain: Domain, *words: str, **parameters: Any) -> Case:
    """A case named by its score function and sizes; identities over the polynomials speak of every input.

    Args:
        words: added to the name. parameters: of the section's instance. A ``seed`` is not named: the first case
            of a section takes one at which every entry of the weights matters.
    """
    sizes = [f"{_LETTERS[name]}={value}" for name, value in parameters.items() if name in _LETTERS]
    scope = Scope.SIZE if domain is POLYNOMIALS else Scope.INPUT
    return Case(", ".join([_NAMES[domain], *sizes, *words]), domain, scope, parameters)
