"""Theorem 3, in full Theorem 6: a bank of k powers of a graph with ceil(sqrt k) heads of linear attention.

Statement. For an N x N matrix A and N x d features X, one layer of linear IHA with H = ceil(sqrt k) heads and P = H
pseudo-heads, on the input [X, I], outputs

    [X, A X, ..., A^(k-1) X]        (its first k d columns; the rest is padding),

with 2N(N+d)H + d(N+d)H^2 + 4H^3 parameters. Multi-head attention does it with k heads and 2N(N+d)k + d(N+d)k.

Premises. None on A: directed, weighted, singular, over any commutative ring. The queries and keys read the identity
positional code only, the values read the features only.

Idea. Write i = hH + m. The query of head h holds A^(hH), the m-th key holds (A^m)^T, so their product is the operator
A^(hH+m), and the m-th pseudo-value places X into column block m: one pseudo-query meets H pseudo-keys at once.
P = H is not needed: any way to write the all-ones H x L matrix as H rank-one matrices c_i g_i^T routes the same base
weights, with P the largest support (:class:`constructions.blocks.Cover`).

Checked: as an identity over Z[A, X] at small sizes; exactly on graphs, for every X at once; by residues at large
sizes; in float64 within a computed bound. That fewer heads do not suffice is the business of
:mod:`constructions.lower_bounds`.

Errata: the k = 4 example in one of its two forms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from constructions import proved
from constructions.bank import Bank, bank
from constructions.bank_cases import OPTIONS
from constructions.blocks import Cover, cheapest_cover, full_cover, powers, routing, unit_like, zeros_like
from constructions.filter_limits import COUNT, SEARCH
from constructions.filter_mutants import mutants, second_query_transposed, without_last_head
from constructions.filter_routings import chosen_cover, requested, requested_tiled
from iha_theory.claims import Case, Claim, Erratum, Mutant, Relation, Scope, Section, Theorem, Verdict
from iha_theory.count import ceil_sqrt, counted
from iha_theory.layer import IHA
from iha_theory.residues import random_primes
from iha_theory.scalars import FLOATS, INTEGERS, POLYNOMIALS, RATIONALS, RESIDUES

_SIDES = ("the layer's output", "[X, AX, ..., A^(k-1) X] by repeated multiplication")


def polynomial_filter(a: np.ndarray, k: int, d: int, *, cover: Cover | None = None,
                      pseudo_heads: int | None = None) -> IHA:
    """The weights of linear IHA that output ``[X, AX, ..., A^(k-1) X]`` from ``[X, I]`` (Theorems 3 and 6).

    Args:
        a: (n, n), any scalars. k: how many powers, at least 1. d: features of X.
        cover: the routing; None takes the paper's, H = P = ceil(sqrt k).
        pseudo_heads: P; takes the tiled routing with the fewest heads. Excludes ``cover``.

    Returns:
        model = d + n (features first), key = n, value = d L for L column blocks; out head h holds the powers hL, ...,
        hL + L - 1.

    Raises:
        ValueError: ``a`` is not square, k or d is below 1, or the cover has too few blocks.
    """
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not a.size:
        raise ValueError(f"the graph's matrix has shape {a.shape}; wanted a square one (n, n), n >= 1")
    n = a.shape[0]
    if k < 1 or d < 1:
        raise ValueError(f"polynomial_filter: got k={k}, d={d}; wanted k >= 1 powers and d >= 1 features")
    if cover is None:
        cover = full_cover(ceil_sqrt(k)) if pseudo_heads is None else cheapest_cover(k, pseudo_heads)
    heads, blocks = cover.heads, cover.columns
    if heads * blocks < k:
        raise ValueError(f"polynomial_filter: the cover has {heads} x {blocks} blocks, but k={k} are wanted")
    small = powers(a, blocks + 1)
    large = powers(small[blocks], heads)
    w_q, w_k = zeros_like(a, (heads, d + n, n)), zeros_like(a, (heads, d + n, n))
    w_v, one = zeros_like(a, (heads, d + n, d * blocks)), unit_like(a, d)
    for m in range(heads):
        w_q[m, d:] = large[m]
        if m < blocks:
            w_k[m, d:] = small[m].T
            w_v[m, :d, m * d : (m + 1) * d] = one
    return IHA(w_q, w_k, w_v, **routing(cover, a))


def _instance(*, k: int, d: int, pseudo_heads: int | None = None, heads: int | None = None, signed: bool = False,
              **source: Any) -> Bank:
    cover = chosen_cover(k, pseudo_heads, heads, signed)
    return bank(lambda a: polynomial_filter(a, k, d, cover=cover), k=k, d=d, rational=signed, **source)


def _free(instance: Bank) -> dict[str, np.ndarray]:
    """The entries that the output does not depend on, one at a time.

    A pseudo-query that no output reads, and the entries of R that would read a pseudo-query that is zero.
    """
    alpha_q, collapse = instance.weights.fields()["alpha_q"], instance.weights.fields()["collapse"]
    return {
        "weights.alpha_q": np.broadcast_to((collapse == 0).all(axis=0), alpha_q.shape),
        "weights.collapse": np.broadcast_to((alpha_q == 0).all(axis=0), collapse.shape),
    }


def _claims(routing: str, says: str) -> tuple[Claim, ...]:
    """The claims on a bank that every routing makes; their names end in the routing's."""
    return (
        Claim(f"bank{routing}", f"{says} output [X, AX, ..., A^(k-1) X]", Relation.EQUAL, lambda i: i.output,
              lambda i: i.target, bound=lambda i: i.rounding,
              sides=_SIDES),
        Claim(f"positions{routing}", "queries and keys read positions only: the output is affine in X", Relation.EQUAL,
              lambda i: i.positional, lambda i: i.positional - i.positional, bound=lambda i: 0.0),
        Claim(f"parameters{routing}", "the built weights have 2N(N+d)H + d(N+d)HL + 4H^2 P entries, for L column blocks",
              Relation.EQUAL, lambda i: counted(i.weights), lambda i: _formula(i.weights.sizes, i.n, i.d),
              domain=INTEGERS, scope=Scope.SIZE),
    )


def _formula(size: dict[str, int], n: int, d: int) -> int:
    heads, blocks = size["out"], size["value"] // d
    return 2 * n * (n + d) * heads + d * (n + d) * heads * blocks + 4 * heads**2 * size["pseudo"]


def _one_head_more(instance: Bank) -> Bank:
    cover = full_cover(ceil_sqrt(instance.k) + 1)
    return replace(instance, weights=polynomial_filter(instance.a, instance.k, instance.d, cover=cover))


IHA_BANK = Section(
    title="P = H pseudo-heads (the paper's routing)",
    instance=_instance,
    cases=(
        Case("symbolic A, n=2, d=1, k=4", POLYNOMIALS, Scope.SIZE, {"n": 2, "d": 1, "k": 4}),
        Case("symbolic A, n=1, d=1, k=1", POLYNOMIALS, Scope.SIZE, {"n": 1, "d": 1, "k": 1}),
        Case("symbolic A, n=3, d=2, k=2", POLYNOMIALS, Scope.SIZE, {"n": 3, "d": 2, "k": 2}),
        Case("symbolic A, n=2, d=2, k=5", POLYNOMIALS, Scope.SIZE, {"n": 2, "d": 2, "k": 5}),
        Case("symbolic A, n=3, d=2, k=9", POLYNOMIALS, Scope.SIZE, {"n": 3, "d": 2, "k": 9}),
        Case("karate, n=34, d=4, k=16", INTEGERS, Scope.GRAPH, {"graph": "karate", "d": 4, "k": 16}),
        Case("karate by rows, n=34, d=2, k=9", RATIONALS, Scope.GRAPH,
             {"graph": "karate", "normalize": "row", "d": 2, "k": 9}),
        Case("random A, n=96, d=3, k=30", RESIDUES, Scope.SIZE,
             {"n": 96, "d": 3, "k": 30, "primes": tuple(random_primes(3, seed=30))}),
        Case("karate, n=34, d=4, k=16, float64", FLOATS, Scope.INPUT, {"graph": "karate", "d": 4, "k": 16}),
        Case("karate symmetric, n=34, d=2, k=9, float64", FLOATS, Scope.INPUT,
             {"graph": "karate", "normalize": "sym", "d": 2, "k": 9}),
    ),
    claims=(*_claims("", "H = ceil(sqrt k) heads with P = H"),
            Claim("heads", "H = ceil(sqrt k) heads", Relation.EQUAL, lambda i: i.weights.sizes["out"],
                  lambda i: ceil_sqrt(i.k), domain=INTEGERS, scope=Scope.SIZE)),
    free=_free,
    mutants=(*mutants(""), Mutant("one head more than needed", _one_head_more, ("heads",))),
    requested=requested,
    options=OPTIONS,
)

FEWER_PSEUDO_HEADS = Section(
    title="P < H pseudo-heads (tiled routing)",
    instance=_instance,
    cases=(
        Case("random A, n=2, d=1, k=16, H=4, P=2", INTEGERS, Scope.GRAPH,
             {"n": 2, "d": 1, "k": 16, "heads": 4, "pseudo_heads": 2}),
        Case("symbolic A, n=2, d=1, k=16, H=4, P=2", POLYNOMIALS, Scope.SIZE,
             {"n": 2, "d": 1, "k": 16, "heads": 4, "pseudo_heads": 2}),
        *(Case(f"random A, n=6, d=1, k={h * blocks}, H={h}, P={p}", RESIDUES, Scope.SIZE,
               {"n": 6, "d": 1, "k": h * blocks, "heads": h, "pseudo_heads": p,
                "primes": tuple(random_primes(3, seed=h))})
          for h, p, blocks in ((5, 3, 5), (6, 2, 4), (6, 3, 6), (7, 4, 7), (8, 2, 4), (9, 3, 9))),
        Case("karate, n=34, d=2, k=16, H=4, P=2", INTEGERS, Scope.GRAPH,
             {"graph": "karate", "d": 2, "k": 16, "heads": 4, "pseudo_heads": 2}),
    ),
    claims=(*_claims("-tiled", "H heads with P < H pseudo-heads and a cover by rectangles"),
            Claim("fewer", "fewer pseudo-heads than heads", Relation.LESS, lambda i: i.weights.sizes["pseudo"],
                  lambda i: i.weights.sizes["out"], domain=INTEGERS, scope=Scope.SIZE)),
    free=_free,
    mutants=(*mutants("-tiled"), Mutant("the paper's routing", lambda i: replace(
        i, weights=polynomial_filter(i.a, i.k, i.d)), ("fewer",))),
    requested=requested_tiled,
    options=OPTIONS,
)

HALVED = Section(
    title="H = 3 heads with P = 2 pseudo-heads (signed routing)",
    instance=_instance,
    cases=(
        Case("random A, n=2, d=1, k=9, H=3, P=2", RATIONALS, Scope.GRAPH, {"n": 2, "d": 1, "k": 9, "signed": True}),
        Case("symbolic A, n=2, d=1, k=9, H=3, P=2", POLYNOMIALS, Scope.SIZE, {"n": 2, "d": 1, "k": 9, "signed": True}),
        Case("karate, n=34, d=2, k=9, H=3, P=2", RATIONALS, Scope.GRAPH,
             {"graph": "karate", "d": 2, "k": 9, "signed": True}),
    ),
    claims=(*_claims("-signed", "3 heads with 2 pseudo-heads and a signed cover"),
            Claim("two", "two pseudo-heads", Relation.EQUAL, lambda i: i.weights.sizes["pseudo"], lambda i: 2,
                  domain=INTEGERS, scope=Scope.SIZE)),
    free=_free,
    mutants=(*mutants("-signed"), Mutant("the paper's routing", lambda i: replace(
        i, weights=polynomial_filter(i.a, i.k, i.d)), ("two",))),
)


def _is_symmetric(instance: Bank) -> bool:
    return bool((instance.a == instance.a.T).all())


K4 = Section(
    title="the k = 4 example",
    instance=_instance,
    cases=(
        Case("symbolic A, n=2, d=1, k=4", POLYNOMIALS, Scope.SIZE, {"n": 2, "d": 1, "k": 4}),
        Case("symbolic symmetric A, n=2, d=1, k=4", POLYNOMIALS, Scope.SIZE,
             {"n": 2, "d": 1, "k": 4, "symmetric": True}),
    ),
    claims=(),
    free=_free,
    errata=(
        Erratum(
            "thm3-k4", "misprint", "the k = 4 example of Theorem 3, in one of its two forms",
            "Printed: the second head's query weight is [0; (A^2)^T]. The general construction, and the example's other "
            "form, have [0; A^2]. The transposed form gives the bank only where A^2 is symmetric, as it is for an "
            "undirected graph.",
            printed=Claim("k4-printed", "with the query weight [0; (A^2)^T] the layer outputs [X, AX, A^2 X, A^3 X]",
                          Relation.EQUAL, lambda i: second_query_transposed(i).output, lambda i: i.target, Verdict.FAILS,
                          applies=lambda i: not _is_symmetric(i), sides=_SIDES),
            corrected=(
                Claim("k4", "with [0; A^2] it does", Relation.EQUAL, lambda i: i.output, lambda i: i.target, sides=_SIDES),
                Claim("k4-symmetric", "for a symmetric A the transposed form does, too", Relation.EQUAL,
                      lambda i: second_query_transposed(i).output, lambda i: i.target, applies=_is_symmetric),
            ),
        ),
    ),
    mutants=(
        Mutant("one output head fewer", without_last_head, ("k4-symmetric",)),
        Mutant("weights that the printed transposition mends", second_query_transposed, ("k4-printed",)),
    ),
)


THEOREM = Theorem(
    number="3 (6)",
    title="Polynomial filters with ceil(sqrt k) heads",
    source="§4.2, Theorem 3; Appendix B.2, Theorem 6",
    statement="One layer of linear IHA with H = ceil(sqrt k) heads and P = H pseudo-heads outputs [X, AX, ..., A^(k-1) X] "
    "with 2N(N+d)H + d(N+d)H^2 + 4H^3 parameters.",
    sections=(IHA_BANK, FEWER_PSEUDO_HEADS, HALVED, SEARCH, K4, COUNT),
    proofs=proved.THEOREM_3,
    headline=("bank",),
)
