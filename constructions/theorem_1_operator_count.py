"""Theorem 1: a layer of linear multi-head attention with H heads applies at most H operators.

Statement. In linear attention head h applies one N x N operator to its values,

    S_h = (X^ W_Q^h) (X^ W_K^h)^T,      X^ = [X, I],

so that H heads apply at most H operators, whose span has dimension at most H. With k heads, W_Q^h = [0; A^h],
W_K^h = [0; I] and W_V^h = [I; 0], the operators are I, A, ..., A^(k-1) and the layer outputs [X, AX, ..., A^(k-1) X].

Premises. No softmax. Queries and keys may read features and positions.

Idea. An output column of a head is its operator times a value column, and there is one operator for each head.

Checked: the k-head construction as an identity over Z[A, X], exactly on graphs, by residues at large sizes; the rank of
the operators, exactly; the parameter count for all sizes.

Not checked here: that the bank needs k heads. The paper concludes so from the operator count; that is not so for every
A, see the errata. It does hold, with the columns in order and one width for all heads, whenever A is not a multiple of
the identity: see :mod:`constructions.lower_bounds`.

Errata: the conclusion for multiples of the identity; the rank of the bank for an invertible A
(:mod:`constructions.bank_rank`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from einops import einsum, rearrange

from constructions import proved
from constructions.bank import Bank, bank
from constructions.bank_cases import OPTIONS, requested_banks
from constructions.bank_rank import RANK
from constructions.blocks import lifted, powers, symbols, unit_like, zeros_like
from constructions.oracle import filter_bank
from iha_theory.attention import linear
from iha_theory.claims import Case, Claim, Erratum, Mutant, Relation, Scope, Section, Theorem, Verdict
from iha_theory.count import counted, parameters
from iha_theory.layer import IHA, forward, multi_head, pseudo_heads
from iha_theory.rank import exact_rank
from iha_theory.scalars import INTEGERS, POLYNOMIALS, Domain, object_array


def polynomial_filter_mha(a: np.ndarray, k: int, d: int) -> IHA:
    """The k-head multi-head attention that outputs ``[X, AX, ..., A^(k-1) X]`` from ``[X, I]`` (Theorems 1 and 3).

    Args:
        a: (n, n), any scalars. k: how many powers, at least 1. d: features of X.

    Returns:
        source = k, model = d + n (features first), key = n, value = d. Head h holds A^h.

    Raises:
        ValueError: ``a`` is not square, or k or d is below 1.
    """
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not a.size:
        raise ValueError(f"the graph's matrix has shape {a.shape}; wanted a square one (n, n), n >= 1")
    if k < 1 or d < 1:
        raise ValueError(f"polynomial_filter_mha: got k={k}, d={d}; wanted k >= 1 powers and d >= 1 features")
    n = a.shape[0]
    w_q, w_k, w_v = (zeros_like(a, (k, d + n, width)) for width in (n, n, d))
    for h, power in enumerate(powers(a, k)):
        w_q[h, d:], w_k[h, d:], w_v[h, :d] = power, unit_like(a, n), unit_like(a, d)
    return multi_head(w_q, w_k, w_v)


def operators(weights: IHA, x: np.ndarray) -> np.ndarray:
    """The operators that linear attention applies, one row each: (head * pseudo * pseudo, token * token)."""
    q, k, _ = pseudo_heads(weights, x)
    scores = einsum(q, k, "head pseudo token key, head pseudo2 token2 key -> head pseudo pseudo2 token token2")
    return rearrange(scores, "head pseudo pseudo2 token token2 -> (head pseudo pseudo2) (token token2)")


def _instance(**source: Any) -> Bank:
    return bank(lambda a: polynomial_filter_mha(a, source["k"], source["d"]), **source)


def _sizes(k: int, d: int, n: int) -> dict[str, int]:
    return {"source": k, "head": k, "out": k, "pseudo": 1, "model": d + n, "key": n, "value": d}


def _mixed(instance: Bank) -> Bank:
    """The same queries, different keys, and two pseudo-heads for each head: more operators than heads."""
    w_k = instance.weights.w_k.copy()
    for h, power in enumerate(powers(instance.a, instance.k)):
        w_k[h, instance.d :] = power.T
    heads = instance.weights.sizes["source"]
    shift = np.stack([np.eye(heads, dtype=int), np.roll(np.eye(heads, dtype=int), 1, axis=0)], axis=2)
    alpha = lifted(shift, instance.a)
    return replace(instance, weights=replace(instance.weights, w_k=w_k, alpha_q=alpha, alpha_k=alpha, alpha_v=alpha,
                                             collapse=alpha))


HEADS = Section(
    title="k heads of multi-head attention",
    instance=_instance,
    cases=(
        Case("symbolic A, n=2, d=1, k=2", POLYNOMIALS, Scope.SIZE, {"n": 2, "d": 1, "k": 2}),
        Case("symbolic A, n=1, d=1, k=1", POLYNOMIALS, Scope.SIZE, {"n": 1, "d": 1, "k": 1}),
        Case("symbolic A, n=3, d=2, k=5", POLYNOMIALS, Scope.SIZE, {"n": 3, "d": 2, "k": 5}),
        Case("random A, n=5, d=2, k=4", INTEGERS, Scope.GRAPH, {"n": 5, "d": 2, "k": 4}),
    ),
    claims=(
        Claim("bank", "k heads of linear multi-head attention output [X, AX, ..., A^(k-1) X]", Relation.EQUAL,
              lambda i: i.output, lambda i: i.target, bound=lambda i: i.rounding,
              sides=("the layer's output", "[X, AX, ..., A^(k-1) X] by repeated multiplication")),
        Claim("parameters", "the built weights have 2N(N+d)k + d(N+d)k entries", Relation.EQUAL,
              lambda i: counted(i.weights), lambda i: 2 * i.n * (i.n + i.d) * i.k + i.d * (i.n + i.d) * i.k,
              domain=INTEGERS, scope=Scope.SIZE),
        Claim("operators", "the operators of H heads span at most H dimensions", Relation.AT_MOST,
              lambda i: exact_rank(operators(i.weights, i.x)), lambda i: i.weights.sizes["head"],
              domain=INTEGERS, scope=Scope.INPUT, applies=lambda i: i.a.dtype == object and INTEGERS.foreign(i.a) is None),
    ),
    mutants=(Mutant("two pseudo-heads for each head", _mixed, ("operators", "parameters")),),
    requested=lambda request: requested_banks(request, _sizes) if request.pseudo_heads is None else (),
    options=OPTIONS,
)


@dataclass(frozen=True)
class Scalar:
    """One head for the bank of A = cI: c a symbol, X (n, d) symbols."""

    weights: IHA
    x: np.ndarray
    target: np.ndarray
    k: int

    @cached_property
    def output(self) -> np.ndarray:
        return forward(self.weights, self.x, linear)


def one_head_for_scalar(c: Any, n: int, k: int, d: int) -> IHA:
    """One linear head that outputs the bank of A = cI from ``[X, I]``: W_V = [I, cI, ..., c^(k-1) I; 0].

    Args:
        c: a scalar of any domain but the floats. n: tokens. k: powers. d: features.
    """
    like = object_array([[c]])
    w_q, w_v = zeros_like(like, (1, d + n, n)), zeros_like(like, (1, d + n, k * d))
    w_q[0, d:] = unit_like(like, n)
    for i in range(k):
        w_v[0, :d, i * d : (i + 1) * d] = unit_like(like, d) * c**i
    return multi_head(w_q, w_q.copy(), w_v)


def _scalar(*, domain: Domain, n: int, k: int, d: int) -> Scalar:
    matrices, (c,) = symbols({"x": (n, d)}, extra=["c"])
    x, identity = matrices["x"], unit_like(matrices["x"], n)
    weights = one_head_for_scalar(c, n, k, d)
    return Scalar(weights, np.concatenate([x, identity], axis=1), filter_bank(identity * c, x, k), k)


CONCLUSION = Section(
    title="multiples of the identity",
    instance=_scalar,
    cases=(Case("A = cI, n=2, d=1, k=3", POLYNOMIALS, Scope.SIZE, {"n": 2, "d": 1, "k": 3}),),
    claims=(),
    errata=(
        Erratum(
            "thm1-conclusion", "false", "Theorem 1, its conclusion",
            "Printed: since H heads apply at most H operators, producing all powers A^0, ..., A^(k-1) needs at least k "
            "heads, with no premise on A. The operator count holds. The conclusion needs the powers to be different "
            "operators: for A = cI one head produces the whole bank, since a value matrix can scale, and cI "
            "has full rank for c != 0. With the columns in order and one width for all heads it is right for every A that "
            "is not a multiple of the identity.",
            printed=Claim("conclusion-printed", "no layer with fewer than k heads outputs the bank of A = cI",
                          Relation.AT_MOST, lambda i: i.k, lambda i: i.weights.sizes["out"], Verdict.FAILS,
                          domain=INTEGERS),
            corrected=(Claim("one-head", "one head outputs the bank of A = cI, for every c and X", Relation.EQUAL,
                             lambda i: i.output, lambda i: i.target),),
        ),
    ),
    mutants=(Mutant("k heads, each with one power",
                    lambda i: replace(i, weights=polynomial_filter_mha(unit_like(i.x, i.x.shape[0]), i.k, 1)),
                    ("conclusion-printed",)),),
)

@dataclass(frozen=True)
class Count:
    """A layer's sizes as symbols and a formula for its parameters, both polynomials in N, d and k."""

    sizes: dict[str, Any]
    formula: Any


def _count(*, domain: Domain) -> Count:
    _, (n, d, k) = symbols({}, extra=["N", "d", "k"])
    return Count(_sizes(k, d, n), 2 * n * (n + d) * k + d * (n + d) * k)


COUNT = Section(
    title="parameters of multi-head attention",
    instance=_count,
    cases=(Case("N, d, k symbolic", POLYNOMIALS, Scope.ALL),),
    claims=(Claim("count", "k heads have 2N(N+d)k + d(N+d)k parameters", Relation.EQUAL,
                  lambda i: parameters(i.sizes, mixed=False), lambda i: i.formula),),
    mutants=(Mutant("no positional rows", lambda i: replace(i, sizes=i.sizes | {"model": i.sizes["key"]}), ("count",)),),
)

THEOREM = Theorem(
    number="1",
    title="Operators of linear multi-head attention",
    source="§3.1, Theorem 1",
    statement="One layer of linear multi-head attention with H heads applies at most H operators; k heads suffice for "
    "the bank [X, AX, ..., A^(k-1) X].",
    sections=(HEADS, CONCLUSION, RANK, COUNT),
    proofs=proved.THEOREM_1,
    headline=("bank",),
)
