"""Sections of Theorem 2: what two pseudo-heads do on repeated tokens that multi-head attention cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from constructions.blocks import lifted
from constructions.inclusion_sections import drawn_heads, unread
from constructions.repeated_sections import Repeated
from constructions.repeated_tokens import own_scores, repeated, separating_layer
from constructions.score_functions import case, quotient
from iha_theory.attention import flat_causal, normalized, token_causal
from iha_theory.claims import Claim, Erratum, Mutant, Relation, Section, Verdict
from iha_theory.layer import IHA, forward
from iha_theory.scalars import BALLS, POLYNOMIALS, RATIONALS, Domain


@dataclass(frozen=True)
class Separation(Repeated):
    """The separating layer on repeated tokens, and the multi-head attention whose heads it takes."""

    original: IHA
    pseudo_heads: int

    def scaled_values(self, factor: Callable[[Any], Any]) -> np.ndarray:
        """factor(s) v of every head, side by side: s is the score of x with itself, v its value."""
        scores, values = own_scores(self.original, self.x)
        return (values * np.frompyfunc(factor, 1, 1)(scores)[:, None]).ravel()

    @cached_property
    def tanh(self) -> np.ndarray:
        """(E(s) - E(-s)) / (E(s) + E(-s)) v in every row; over balls tanh(s / sqrt d_k) v."""
        return repeated(self.scaled_values(self.score.balance), self.n)

    @cached_property
    def shifted_tanh(self) -> np.ndarray:
        """Row t is ((t+1) E(s) - t E(-s)) / ((t+1) E(s) + t E(-s)) v; over balls written with tanh."""
        return np.stack([self.scaled_values(lambda s, t=t: self.score.balance(s, t + 1, t))
                         for t in range(self.n)])

    @cached_property
    def damped(self) -> np.ndarray:
        """(E(s) - E(-s)) / (E(s) + E(-s) + (P - 2) E(0)) v in every row."""

        def factor(s: Any) -> Any:
            plus, minus, rest = (self.score.weight(t) for t in (s, -s, s * 0))
            return quotient(plus - minus, plus + minus + rest * (self.pseudo_heads - 2))

        return repeated(self.scaled_values(factor), self.n)

    @cached_property
    def antisymmetric(self) -> np.ndarray:
        """The output when W_K = W_Q J with J antisymmetric (d_k = 2), so that W_Q W_K^T is antisymmetric."""
        turn = lifted(np.array([[0, 1], [-1, 0]]), self.layer.w_q)
        layer = replace(self.layer, w_k=self.layer.w_q @ turn)
        return forward(layer, repeated(self.x, self.n), self.score.attention(None))


@dataclass(frozen=True)
class Example(Separation):
    """The separating layer with P = 2, the printed one, and over the polynomials a symbol y for an exponential."""

    printed: IHA
    y_symbol: Any

    @cached_property
    def printed_output(self) -> np.ndarray:
        return forward(self.printed, repeated(self.x, self.n), self.score.attention(None))

    @property
    def values(self) -> np.ndarray:
        """x^T W_V of every head, side by side, in every row."""
        return repeated(own_scores(self.original, self.x)[1].ravel(), self.n)

    def exponential(self, score: Any) -> Any:
        """E(score) for an exponential E; over the polynomials y^(m + 4) at the score m s, y = E(s).

        The common factor y^4 keeps the exponents from being negative, and cancels in every row.
        """
        if self.domain is not POLYNOMIALS:
            return self.score.weight(score)
        s = own_scores(self.original, self.x)[0][0]
        multiple = next(m for m in range(-4, 5) if score == s * m)
        return self.y_symbol ** (multiple + 4)

    @cached_property
    def doubled(self) -> np.ndarray:
        """f(2x) - 2 f(x) for the layer f."""
        attention = normalized(self.exponential)
        once, twice = (forward(self.layer, repeated(x, self.n), attention) for x in (self.x, self.x + self.x))
        return twice - once * 2

    @cached_property
    def doubled_form(self) -> np.ndarray:
        """4 y^2 (y^6 - 1) / ((y^8 + 1) (y^2 + 1)) v with y = E(s), in every row."""

        def factor(s: Any) -> Any:
            y = self.y_symbol if self.domain is POLYNOMIALS else self.score.weight(s)
            return quotient(4 * y**2 * (y**6 - 1), (y**8 + 1) * (y**2 + 1))

        return repeated(self.scaled_values(factor), self.n)


def _separation(*, domain: Domain, n: int, d: int, heads: int, key: int = 1, value: int = 1,
                pseudo_heads: int = 2, seed: int = 0) -> Separation:
    original, arrays, formal = drawn_heads(domain, 1, d, heads, key, value, scores=heads * 6 + 2, seed=seed,
                                           y=(d,))
    layer = separating_layer(original, pseudo_heads)
    return Separation(domain, layer, arrays["x"][0], arrays["y"], n, formal, original, pseudo_heads)


def _example(**sizes: Any) -> Example:
    fields = vars(_separation(**sizes))
    *formal, y_symbol = fields.pop("formal") or [None]
    return Example(**fields, formal=formal, printed=separating_layer(fields["original"], as_printed=True),
                   y_symbol=y_symbol)


def _free(instance: Example) -> dict[str, np.ndarray]:
    """In the printed example scores do not matter, in the corrected one the query that R does not pick."""
    printed = instance.printed.fields()
    free = {f"printed.{name}": np.ones(printed[name].shape, dtype=bool)
            for name in ("w_q", "w_k", "alpha_q", "alpha_k")}
    return free | unread(instance.layer, 0)


def _not_additive(name: str) -> Claim:
    return Claim(name, "it is not additive: f(x + y) is not f(x) + f(y)", Relation.DIFFERENT,
                 lambda i: i.at(i.x + i.y), lambda i: i.at(i.x) + i.at(i.y))


EXAMPLE = Section(
    title="the separating example, P = 2",
    instance=_example,
    cases=(
        case(RATIONALS, n=2, d=1, key=2, heads=1, seed=33),
        case(POLYNOMIALS, n=3, d=2, key=2, heads=1),
        case(POLYNOMIALS, n=1, d=1, key=2, heads=2),
        case(RATIONALS, n=4, d=3, key=2, value=5, heads=2),
        case(BALLS, n=4, d=3, key=2, value=5, heads=2),
    ),
    claims=(
        Claim("tanh-token", "with the token-causal mask the corrected example outputs (E(s) - E(-s)) / "
              "(E(s) + E(-s)) v too", Relation.EQUAL, lambda i: i.at(i.x, token_causal), lambda i: i.tanh),
        Claim("tanh-flat", "with the flat causal mask token t outputs tanh(s + ln((t+1)/t)/2) v, token 0 outputs "
              "v: the weights are (t+1) E(s) and t E(-s)", Relation.EQUAL,
              lambda i: i.at(i.x, flat_causal), lambda i: i.shifted_tanh),
        Claim("doubling", "for an exponential, with y = E(s), f(2x) - 2 f(x) = "
              "4 y^2 (y^6 - 1) / ((y^8 + 1)(y^2 + 1)) v, which is 0 for y > 0 only at y = 1: f is linear only if "
              "s or v always vanishes", Relation.EQUAL, lambda i: i.doubled, lambda i: i.doubled_form,
              applies=lambda i: i.domain is not POLYNOMIALS or len(i.original.w_q) == 1),
        Claim("antisymmetric", "where W_Q W_K^T is antisymmetric s vanishes and the corrected example outputs 0",
              Relation.EQUAL, lambda i: i.antisymmetric, lambda i: i.values * 0),
    ),
    errata=(
        Erratum(
            "thm2-example-linear", "false", "Theorem 5, proof of strictness (Appendix B)",
            "Printed: pseudo-heads with signs +, - on queries and keys and signs +, + on values, R on the first, "
            "compute a non-linear function of tanh kind on repeated tokens. The scores do alternate, but both "
            "value rows are equal, and a convex combination of equal rows is that row: the example is linear. "
            "With signs +, - on the values as well it outputs tanh(s) v, and the separation stands.",
            printed=Claim("example-printed", "the printed example is non-linear, of tanh kind: "
                          "(E(s) - E(-s)) / (E(s) + E(-s)) v", Relation.EQUAL, lambda i: i.printed_output,
                          lambda i: i.tanh, Verdict.FAILS),
            corrected=(
                Claim("example-linear", "the printed example outputs x^T W_V in every row", Relation.EQUAL,
                      lambda i: i.printed_output, lambda i: i.values),
                Claim("tanh", "with signs +, - on the values the layer outputs (E(s) - E(-s)) / (E(s) + E(-s)) v, "
                      "which is tanh(s) v for softmax", Relation.EQUAL, lambda i: i.at(i.x), lambda i: i.tanh,
                      sides=("the layer's output on repeated tokens", "the closed form")),
                _not_additive("not-additive"),
            ),
        ),
    ),
    free=_free,
    mutants=(
        Mutant("the printed signs", lambda i: replace(i, layer=i.printed),
               ("tanh", "tanh-token", "tanh-flat", "not-additive", "doubling", "antisymmetric")),
        Mutant("the corrected signs in the printed place", lambda i: replace(i, printed=i.layer),
               ("example-printed", "example-linear")),
    ),
)

ZERO_MIXING = Section(
    title="zero mixing, P > 2",
    instance=_separation,
    cases=(
        case(RATIONALS, n=2, d=1, heads=1, pseudo_heads=3),
        case(POLYNOMIALS, n=2, d=2, key=2, heads=1, pseudo_heads=3),
        case(POLYNOMIALS, n=1, d=1, heads=2, pseudo_heads=5),
        case(BALLS, n=4, d=3, key=2, value=5, heads=2, pseudo_heads=3),
    ),
    claims=(),
    errata=(
        Erratum(
            "thm2-zero-mixing", "false", "Theorem 5, proof of strictness for P > 2 (Appendix B)",
            "Printed: pseudo-heads beyond the second are deactivated by setting their mixing coefficients to zero. "
            "Their keys then score 0, and exp(0) = 1 stays in the denominator, once for each: the function is "
            "another one. It is still not linear, so the conclusion, strictness for every P >= 2, stands.",
            printed=Claim("zero-mixing-printed", "with P > 2 and zero mixing beyond the second pseudo-head the "
                          "layer outputs what it does with P = 2", Relation.EQUAL, lambda i: i.at(i.x),
                          lambda i: i.tanh, Verdict.FAILS),
            corrected=(
                Claim("zero-mixing", "it outputs (E(s) - E(-s)) / (E(s) + E(-s) + (P-2) E(0)) v", Relation.EQUAL,
                      lambda i: i.at(i.x), lambda i: i.damped),
                _not_additive("zero-mixing-strict"),
            ),
        ),
    ),
    # A pseudo-query without mixing weighs all keys alike, and the pseudo-values v, -v, 0, ... have mean 0.
    free=lambda i: unread(i.layer, 0) | {"layer.collapse": np.broadcast_to(
        np.arange(i.pseudo_heads) > 1, i.layer.fields()["collapse"].shape)},
    mutants=(
        Mutant("two pseudo-heads", lambda i: replace(i, layer=separating_layer(i.original)),
               ("zero-mixing-printed", "zero-mixing")),
        Mutant("no queries", lambda i: replace(i, layer=replace(i.layer, w_q=i.layer.w_q * 0)),
               ("zero-mixing", "zero-mixing-strict")),
    ),
)
