"""Theorem 2, in full Theorem 5: the layer contains multi-head attention, and more of it from P = 2 on.

Statement. A layer with H heads, P pseudo-heads and base projections of Q parameters has Q + 4 H^2 P parameters.
For every P >= 1 it can equal any layer of multi-head attention with H heads. For P >= 2 it computes functions
that no multi-head attention computes: on repeated tokens X = 1 x^T every head of the latter outputs

    1 x^T W_V    (linear in x),        while two pseudo-heads can output        1 tanh(s) v^T,

where v = W_V^T x is the value and s = (W_Q^T x) . (W_K^T x) / sqrt d_k the score of the token with itself.

Premises. A row of attention weights is a positive function of the scores, divided by its sum; softmax is one.
Inclusion: no mask, or the token-causal one. With the flat causal mask, that of a standard causal kernel on the
N P virtual tokens, R has to pick the last pseudo-head. Rotary positions have to be those of the tokens.
Linearity on repeated tokens: no positional code in the input.

Idea. Inclusion: every pseudo-head of head h copies base head h. Every key occurs P times with one score, and
the copies cancel in the row sum as long as a row sees all of them or none. Only the sum of the copies' values
matters, so they may differ: such points equal multi-head attention and are free to train. Strictness: all tokens
are alike, so a row of multi-head attention averages equal values. Two pseudo-heads of opposite signs bring two
values, v and -v, with the scores s and -s. Multi-head attention is additive there, with any number of heads and
any output projection; tanh(s) v is not.

Checked: each equality for a formal score function, all weights and all inputs of a size; with 2^s over the
rationals; with softmax at its real temperature over balls. The parameter count and the largest error under the
flat causal mask, for all sizes. For an exponential, f(2x) - 2 f(x) in closed form.

Not checked here: what training does at these points; which layers with one active pseudo-query are linear.

Errata: the flat causal mask and rotary positions (gaps in the proof of inclusion); the printed separating
example, which is linear; zero mixing, which does not deactivate a pseudo-head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from constructions import proved
from constructions.blocks import symbols
from constructions.inclusion_gaps import EARLIER, ROTARY
from constructions.inclusion_sections import FREE, INCLUSION
from constructions.repeated_sections import GENERAL, MULTI_HEAD, SINGLE
from constructions.strictness_sections import EXAMPLE, ZERO_MIXING
from iha_theory.claims import Case, Claim, Mutant, Relation, Scope, Section, Theorem
from iha_theory.count import parameters
from iha_theory.scalars import POLYNOMIALS, Domain


@dataclass(frozen=True)
class Count:
    """The sizes of a layer's axes as symbols, and what is said of them: Q, and what the mixing adds."""

    sizes: Mapping[str, Any]
    projections: Any
    mixing: Any


def _count(*, domain: Domain) -> Count:
    _, (d, key, value, h, p) = symbols({}, extra=["D", "d_k", "d_v", "H", "P"])
    sizes = {"source": h, "head": h, "out": h, "pseudo": p, "model": d, "key": key, "value": value}
    return Count(sizes, h * d * (2 * key + value), 4 * h**2 * p)


@dataclass(frozen=True)
class Largest:
    """p and s = sqrt(J / P) as symbols, and what the error's factor is said to be at most: a fraction."""

    p: Any
    s: Any
    numerator: Any
    denominator: Any


def _largest(*, domain: Domain) -> Largest:
    _, (p, s) = symbols({}, extra=["p", "s"])
    return Largest(p, s, 1 - s, 1 + s)


COUNT = Section(
    title="parameters",
    instance=_count,
    cases=(Case("D, d_k, d_v, H, P symbolic", POLYNOMIALS, Scope.ALL),),
    claims=(
        Claim("count", "the layer has Q + 4 H^2 P parameters", Relation.EQUAL,
              lambda i: parameters(i.sizes), lambda i: i.projections + i.mixing),
        Claim("count-projections", "Q = H D (2 d_k + d_v), which is all that multi-head attention has",
              Relation.EQUAL, lambda i: parameters(i.sizes, mixed=False), lambda i: i.projections),
    ),
    mutants=(
        Mutant("R is not counted", lambda i: replace(i, mixing=i.mixing - i.sizes["head"] ** 2 * i.sizes["pseudo"]),
               ("count",)),
        Mutant("one value column fewer",
               lambda i: replace(i, projections=i.projections - i.sizes["head"] * i.sizes["model"]),
               ("count", "count-projections")),
    ),
)

LARGEST = Section(
    title="the largest error under the flat causal mask",
    instance=_largest,
    cases=(Case("p, J/P symbolic", POLYNOMIALS, Scope.ALL),),
    claims=(
        Claim("flat-largest", "with r = J/P and s = sqrt r, the factor f = (1-r) p(1-p) / (1 - (1-r) p) of the "
              "error is at most (1-s)/(1+s), reached at p = 1/(1+s), since "
              "((1-s) - (1+s) f) (1 - (1-r) p) = (1-s) (1 - (1+s) p)^2", Relation.EQUAL,
              lambda i: (i.numerator * (1 - (1 - i.s**2) * i.p)
                         - i.denominator * (1 - i.s**2) * i.p * (1 - i.p)),
              lambda i: (1 - i.s) * (1 - (1 + i.s) * i.p) ** 2),
    ),
    mutants=(Mutant("1 - s alone", lambda i: replace(i, denominator=i.denominator - i.s), ("flat-largest",)),),
)

THEOREM = Theorem(
    number="2 (5)",
    title="The layer contains multi-head attention, strictly for P >= 2",
    source="§4, Theorem 2; Appendix B, Theorem 5",
    statement="With P pseudo-heads the layer has Q + 4 H^2 P parameters and can equal any multi-head attention "
    "with H heads, for every P >= 1; for P >= 2 it computes more.",
    sections=(COUNT, INCLUSION, EARLIER, LARGEST, ROTARY, FREE, MULTI_HEAD, GENERAL, SINGLE, EXAMPLE, ZERO_MIXING),
    proofs=proved.THEOREM_2,
    headline=("inclusion", "inclusion-token", "not-additive"),
)
