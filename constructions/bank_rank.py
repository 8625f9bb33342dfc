"""The rank of the bank [X, AX, ..., A^(k-1) X] at given features, and the printed argument that takes it to be kd.

For d = 1 the bank has rank k for a suitable X exactly when I, A, ..., A^(k-1) are independent; that A is invertible is not
enough. Checked: the printed statement at A = I, where it fails, and the independent powers of a cyclic shift.

Erratum: the rank of the bank for an invertible A (Theorems 1 and 6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from constructions.oracle import filter_bank
from iha_theory.claims import Case, Claim, Erratum, Mutant, Relation, Scope, Section, Verdict
from iha_theory.rank import exact_rank
from iha_theory.scalars import INTEGERS, Domain


@dataclass(frozen=True)
class Dimension:
    """The bank of a given invertible A at given features, and what its rank is said to be."""

    a: np.ndarray
    x: np.ndarray
    k: int

    @cached_property
    def rank(self) -> int:
        return exact_rank(filter_bank(self.a, self.x, self.k))


def _dimension(*, domain: Domain, n: int, k: int, kind: str) -> Dimension:
    identity = np.eye(n, dtype=int)
    a = {"identity": identity, "shift": np.roll(identity, 1, axis=1)}[kind]
    return Dimension(domain.array(a), domain.array(np.arange(1, n + 1).reshape(n, 1) ** 2), k)


RANK = Section(
    title="the rank of the bank",
    instance=_dimension,
    cases=(
        Case("A = I, n=3, d=1, k=3", INTEGERS, Scope.INPUT, {"n": 3, "k": 3, "kind": "identity"}),
        Case("cyclic shift, n=3, d=1, k=3", INTEGERS, Scope.INPUT, {"n": 3, "k": 3, "kind": "shift"}),
    ),
    claims=(),
    errata=(
        Erratum(
            "thm1-rank", "false", "the proof that multi-head attention needs k heads (Theorems 1 and 6)",
            "Printed: for A of full rank the bank [X, AX, ..., A^(k-1) X] has rank kd for suitable X. An invertible A "
            "is not enough: A = I gives rank d and an involution at most 2d. What matters is how many powers are "
            "independent. For d = 1 the bank has rank k for a suitable X exactly when I, A, ..., A^(k-1) are independent.",
            printed=Claim("rank-printed", "A invertible gives a bank of rank kd", Relation.EQUAL, lambda i: i.rank,
                          lambda i: i.k * i.x.shape[1], Verdict.FAILS,
                          applies=lambda i: bool((i.a == np.eye(i.a.shape[0], dtype=int)).all())),
            corrected=(
                Claim("rank-identity", "A = I gives a bank of rank d", Relation.EQUAL, lambda i: i.rank,
                      lambda i: i.x.shape[1],
                      applies=lambda i: bool((i.a == np.eye(i.a.shape[0], dtype=int)).all())),
                Claim("rank-independent", "independent powers (the cyclic shift, k <= n) give a bank of rank k at d = 1",
                      Relation.EQUAL, lambda i: i.rank, lambda i: i.k,
                      applies=lambda i: bool((i.a != np.eye(i.a.shape[0], dtype=int)).any())),
            ),
        ),
    ),
    mutants=(
        Mutant("k = 1", lambda i: replace(i, k=1), ("rank-printed",)),
        Mutant("independent features, d = 2", lambda i: replace(i, x=np.concatenate([i.x, i.x * 0], axis=1)),
               ("rank-identity",)),
        Mutant("constant features", lambda i: replace(i, x=i.x * 0 + 1), ("rank-independent",)),
    ),
)
