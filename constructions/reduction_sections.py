"""The claims that linear IHA is multi-head attention with a projection, in the three forms of
:mod:`constructions.reductions`.

Checked: the identities with every weight and every input entry a symbol, at small sizes; on integers at sizes that are
all different; that queries and keys that read positions only give score matrices that do not depend on the features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from einops import einsum

from constructions.blocks import symbols, zeros_like
from constructions.reductions import Projected, as_base_heads, as_pseudo_heads, as_value_heads
from iha_theory.attention import linear
from iha_theory.claims import Case, Claim, Mutant, Relation, Scope, Section
from iha_theory.layer import AXES, IHA, forward, multi_head
from iha_theory.scalars import INTEGERS, POLYNOMIALS, Domain


@dataclass(frozen=True)
class Reduced:
    """A layer, its three forms, and an input (n, model) whose first ``features`` columns queries and keys ignore."""

    layer: IHA
    base: IHA
    base_projection: np.ndarray
    pseudo: IHA
    pseudo_projection: np.ndarray
    value: IHA
    value_projection: np.ndarray
    out: int
    x: np.ndarray
    features: int

    @cached_property
    def output(self) -> np.ndarray:
        return forward(self.layer, self.x, linear)

    @property
    def output_of_one(self) -> np.ndarray:
        """The columns of the output head ``out``."""
        width = self.layer.sizes["value"]
        return self.output[:, self.out * width : (self.out + 1) * width]

    @property
    def feature_scores(self) -> np.ndarray:
        """What the features contribute to the scores: these rows and columns of every W_Q W_K^T, of all three forms."""
        products = np.concatenate([einsum(w.w_q, w.w_k, "source model key, source model2 key -> source model model2")
                                   for w in (self.base, self.pseudo, self.value)])
        parts = products[:, : self.features], products[:, :, : self.features]
        return np.concatenate([part.reshape(-1) for part in parts])


def drawn_layer(domain: Domain, n: int, sizes: dict[str, int], seed: int) -> tuple[IHA, np.ndarray]:
    """A layer and an input (n, model): independent symbols over the integers, or small integers without 0.

    Args:
        sizes: every axis of the layer to its size.
    """
    shapes = {name: tuple(sizes[axis] for axis in axes.split()) for name, axes in AXES.items()}
    shapes["x"] = (n, sizes["model"])
    if domain is POLYNOMIALS:
        flat, _ = symbols({name: (1, prod(shape)) for name, shape in shapes.items()})
        arrays = {name: flat[name].reshape(shape) for name, shape in shapes.items()}
    else:
        source = np.random.default_rng(seed)
        arrays = {name: domain.array(source.choice([-3, -2, -1, 1, 2, 3], shape)) for name, shape in shapes.items()}
    x = arrays.pop("x")
    return IHA(**arrays), x


def reduced(*, domain: Domain, n: int, model: int, heads: int, pseudo_heads: int, key: int, value: int, out: int = 0,
            features: int = 0, seed: int = 0) -> Reduced:
    """A drawn layer with its three forms."""
    sizes = {"source": heads, "head": heads, "out": heads, "pseudo": pseudo_heads, "model": model, "key": key,
             "value": value}
    layer, x = drawn_layer(domain, n, sizes, seed)
    if features:
        w_q, w_k = layer.w_q.copy(), layer.w_k.copy()
        w_q[:, :features] = w_k[:, :features] = zeros_like(w_q, (heads, features, key))
        layer = replace(layer, w_q=w_q, w_k=w_k)
    return Reduced(layer, *as_base_heads(layer), *as_pseudo_heads(layer), *as_value_heads(layer, out), out, x, features)


def _case(domain: Domain, n: int, model: int, heads: int, pseudo_heads: int, key: int, value: int, **more: Any) -> Case:
    parameters = {"n": n, "model": model, "heads": heads, "pseudo_heads": pseudo_heads, "key": key, "value": value}
    words = [f"{letter}={size}" for letter, size in zip(("n", "D", "H", "P", "d_k", "d_v"), parameters.values(),
                                                        strict=True)]
    kind, scope = ("symbolic", Scope.SIZE) if domain is POLYNOMIALS else ("random integers", Scope.INPUT)
    name = ", ".join([f"{kind} weights and input", *words, *(f"{key}={value}" for key, value in more.items())])
    return Case(name, domain, scope, parameters | more)


def _without_last_head(heads: IHA) -> IHA:
    return multi_head(heads.w_q[:-1], heads.w_k[:-1], heads.w_v[:-1])


def _reading(heads: IHA, features: int) -> IHA:
    w_q = heads.w_q.copy()
    w_q[:, :features] = w_q[:, :features] + 1
    return replace(heads, w_q=w_q)


def _count(form: str, wanted: str, count: Callable[[int, int], int]) -> Claim:
    return Claim(f"reduction-{form}-heads", f"they are {wanted} heads", Relation.EQUAL,
                 lambda i: getattr(i, form).sizes["out"],
                 lambda i: count(i.layer.sizes["source"], i.layer.sizes["pseudo"]), domain=INTEGERS, scope=Scope.SIZE)


REDUCTIONS = Section(
    title="linear IHA is multi-head attention with a projection",
    instance=reduced,
    cases=(
        _case(INTEGERS, 2, 2, 1, 2, 1, 1),
        _case(POLYNOMIALS, 2, 3, 1, 2, 2, 1, features=1),
        _case(POLYNOMIALS, 1, 1, 1, 1, 1, 1),
        _case(POLYNOMIALS, 3, 2, 2, 2, 1, 1),
        _case(POLYNOMIALS, 2, 1, 3, 4, 1, 1, out=2),
        _case(POLYNOMIALS, 2, 1, 2, 3, 4, 5, out=1),
        _case(POLYNOMIALS, 2, 3, 1, 2, 2, 1),
        _case(POLYNOMIALS, 1, 2, 2, 1, 3, 2, out=1),
        _case(INTEGERS, 7, 6, 3, 2, 5, 4, out=2),
        _case(INTEGERS, 4, 5, 2, 3, 1, 7, out=1),
    ),
    claims=(
        Claim("reduction-base", "H^2 heads, every base query with every base key, and a projection output what the "
              "layer outputs", Relation.EQUAL, lambda i: Projected(i.base, i.base_projection).output(i.x),
              lambda i: i.output),
        _count("base", "H^2", lambda heads, pseudos: heads**2),
        Claim("reduction-pseudo", "H P^2 heads, every pseudo-query with every pseudo-key of its head, and a projection "
              "do, too", Relation.EQUAL, lambda i: Projected(i.pseudo, i.pseudo_projection).output(i.x),
              lambda i: i.output),
        _count("pseudo", "H P^2", lambda heads, pseudos: heads * pseudos**2),
        Claim("reduction-value", "one output head is a sum of H heads, one for each base value", Relation.EQUAL,
              lambda i: Projected(i.value, i.value_projection).output(i.x), lambda i: i.output_of_one),
        _count("value", "H", lambda heads, pseudos: heads),
        Claim("reduction-positions", "queries and keys that read positions only give such heads in all three forms",
              Relation.EQUAL, lambda i: i.feature_scores, lambda i: i.feature_scores - i.feature_scores,
              applies=lambda i: i.features > 0),
    ),
    mutants=(
        *(Mutant(f"one {form} head fewer", lambda i, form=form: replace(i, **{
            form: _without_last_head(getattr(i, form)),
            f"{form}_projection": getattr(i, f"{form}_projection")[: -getattr(i, form).sizes["value"]]}),
            (f"reduction-{form}", f"reduction-{form}-heads")) for form in ("base", "pseudo", "value")),
        Mutant("queries that read features", lambda i: replace(i, base=_reading(i.base, i.features)),
               ("reduction-positions",)),
    ),
)
