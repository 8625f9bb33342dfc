"""Linear IHA is multi-head attention followed by an output projection, in three ways.

Statement. For every linear IHA layer with H heads and P pseudo-heads, every output head h and every input X,

    O_h = sum_(h',j,j')  head(Q[h',j], K[h',j'], V[h',j'])  R[h,h',j]           H P^2 heads, those of the pseudo-heads
        = sum_(m,m')     head(W_Q^m, W_K^m', I)  W_O[m,m'][h]                   H^2 heads, those of the base heads
        = sum_m          head(S_h[m], I, W_V^m)                                 H heads, another H for each h

with head(W_Q, W_K, W_V) = (X W_Q)(X W_K)^T X W_V, Q[h,j] = sum_m alpha^Q[m,h,j] W_Q^m (K and V likewise), and

    W_O[m,m'][h] = sum_(h',j,j') R[h,h',j] alpha^Q[m,h',j] alpha^K[m',h',j'] V[h',j'],
    S_h[m]       = sum_(h',j,j') R[h,h',j] alpha^V[m,h',j'] Q[h',j] K[h',j']^T.

The first two have the same heads for all h: a projection W_O after the layer only changes theirs.

Premises. Linear attention without a mask. Any weights, any input, any commutative ring.

Idea. Output h is linear in R, in the mixed queries, in the mixed keys and in the mixed values. Expanding nothing,
queries and keys, or the values gives the three forms.

Checked: the identities with every weight and every input entry a symbol, at small sizes; on integers at sizes that are
all different; that queries and keys that read positions only give score matrices that do not depend on the features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from einops import einsum, rearrange

from constructions.blocks import symbols, unit_like, zeros_like
from iha_theory.attention import linear
from iha_theory.claims import Case, Claim, Mutant, Relation, Scope, Section
from iha_theory.layer import AXES, IHA, forward, multi_head
from iha_theory.scalars import INTEGERS, POLYNOMIALS, Domain


class Projected(NamedTuple):
    """Multi-head attention, and the projection (head * value, columns) that follows it."""

    heads: IHA
    projection: np.ndarray

    def output(self, x: np.ndarray) -> np.ndarray:
        """The projected heads on the input (token, model): (token, columns)."""
        return forward(self.heads, x, linear) @ self.projection


def _mixing(iha: IHA) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """alpha^Q, alpha^K, alpha^V and R; for multi-head attention the identity, with one pseudo-head."""
    heads = iha.sizes["source"]
    identity = rearrange(unit_like(iha.w_q, heads), "source head -> source head 1")
    given = iha.fields()
    alpha_q, alpha_k, alpha_v = (given.get(name, identity) for name in ("alpha_q", "alpha_k", "alpha_v"))
    return alpha_q, alpha_k, alpha_v, given.get("collapse", identity)


def _mixed(w: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    return einsum(alpha, w, "source head pseudo, source model feature -> head pseudo model feature")


def as_base_heads(iha: IHA) -> Projected:
    """The layer as H^2 heads with a projection: head (m, m') has the base query m, the base key m', the input as value.

    Args:
        iha: any layer of linear attention.

    Returns:
        heads with source = H^2 and value = model, and the projection (H^2 model, out value).
    """
    alpha_q, alpha_k, alpha_v, collapse = _mixing(iha)
    heads, model = iha.sizes["source"], iha.sizes["model"]
    queries = einsum(collapse, alpha_q, "out head pseudo, source head pseudo -> out source head")
    values = einsum(alpha_k, _mixed(iha.w_v, alpha_v),
                    "source head pseudo, head pseudo model value -> source head model value")
    projection = einsum(queries, values, "out query head, key head model value -> query key model out value")
    w_v = zeros_like(iha.w_q, (heads**2, model, model))
    w_v[:] = unit_like(iha.w_q, model)
    return Projected(multi_head(np.repeat(iha.w_q, heads, axis=0), np.concatenate([iha.w_k] * heads), w_v),
                     rearrange(projection, "query key model out value -> (query key model) (out value)"))


def as_pseudo_heads(iha: IHA) -> Projected:
    """The layer as H P^2 heads with a projection: head (h, j, j') has pseudo-query j, pseudo-key j' and -value j' of h.

    Returns:
        heads with source = H P^2, and the projection (H P^2 value, out value), which holds R.
    """
    alpha_q, alpha_k, alpha_v, collapse = _mixing(iha)
    pseudos, value = iha.sizes["pseudo"], iha.sizes["value"]
    q, k, v = _mixed(iha.w_q, alpha_q), _mixed(iha.w_k, alpha_k), _mixed(iha.w_v, alpha_v)
    w_q = rearrange(np.stack([q] * pseudos, axis=2), "head pseudo pseudo2 model key -> (head pseudo pseudo2) model key")
    w_k, w_v = (rearrange(np.stack([w] * pseudos, axis=1),
                          "head pseudo pseudo2 model feature -> (head pseudo pseudo2) model feature") for w in (k, v))
    placed = einsum(collapse, unit_like(iha.w_q, value),
                    "out head pseudo, value value2 -> head pseudo value out value2")
    projection = rearrange(np.stack([placed] * pseudos, axis=2),
                           "head pseudo pseudo2 value out value2 -> (head pseudo pseudo2 value) (out value2)")
    return Projected(multi_head(w_q, w_k, w_v), projection)


def as_value_heads(iha: IHA, out: int) -> Projected:
    """One output head as the sum of H heads: head m has the base value m, and all scores that meet it as its query.

    Args:
        out: the output head.

    Returns:
        heads with source = H and key = model, and the projection (H value, value) that adds them.

    Raises:
        ValueError: there is no such output head.
    """
    if not 0 <= out < iha.sizes["out"]:
        raise ValueError(f"output head: got {out}, wanted one of 0, ..., {iha.sizes['out'] - 1}")
    alpha_q, alpha_k, alpha_v, collapse = _mixing(iha)
    heads, model, value = (iha.sizes[axis] for axis in ("source", "model", "value"))
    read = rearrange(collapse[out], "head pseudo -> 1 head pseudo") * alpha_q
    queries = einsum(read, iha.w_q, "source head pseudo, source model key -> head model key")
    keys = einsum(alpha_v, _mixed(iha.w_k, alpha_k),
                  "source head pseudo, head pseudo model key -> source head model key")
    w_q = einsum(queries, keys, "head model key, source head model2 key -> source model model2")
    w_k, projection = zeros_like(iha.w_q, (heads, model, model)), zeros_like(iha.w_q, (heads, value, value))
    w_k[:], projection[:] = unit_like(iha.w_q, model), unit_like(iha.w_q, value)
    return Projected(multi_head(w_q, w_k, iha.w_v), rearrange(projection, "head value value2 -> (head value) value2"))


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
        flat, _ = symbols(domain, {name: (1, prod(shape)) for name, shape in shapes.items()})
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
