"""Shared brick of Theorem 3: constructions that are wrong in one place, which the claims must tell from the right one."""

from __future__ import annotations

from dataclasses import replace

from constructions.bank import Bank
from constructions.blocks import powers
from iha_theory.claims import Mutant
from iha_theory.layer import IHA


def without_last_head(instance: Bank) -> Bank:
    """One output head fewer: its columns are zero."""
    collapse = instance.weights.fields()["collapse"].copy()
    collapse[-1] = collapse[-1] - collapse[-1]
    return replace(instance, weights=replace(instance.weights, collapse=collapse))


def skipping(instance: Bank) -> Bank:
    """Queries A^(m(H+1)) for A^(mH): one power is skipped between heads."""
    w_q = instance.weights.w_q.copy()
    for m in range(w_q.shape[0]):
        w_q[m, instance.d :] = w_q[m, instance.d :] @ powers(instance.a, m + 1)[m]
    return replace(instance, weights=replace(instance.weights, w_q=w_q))


def untransposed(instance: Bank) -> Bank:
    """Keys A^m for (A^m)^T."""
    w_k = instance.weights.w_k.copy()
    w_k[:, instance.d :] = w_k[:, instance.d :].transpose(0, 2, 1)
    return replace(instance, weights=replace(instance.weights, w_k=w_k))


def without_mixing(instance: Bank) -> Bank:
    """The base weights as multi-head attention: the mixing weights are gone."""
    w = instance.weights
    return replace(instance, weights=IHA(w.w_q, w.w_k, w.w_v))


def second_query_transposed(instance: Bank) -> Bank:
    """The query weight of head 1 with the positional block transposed: the printed form of the k = 4 example."""
    w_q = instance.weights.w_q.copy()
    w_q[1, instance.d :] = w_q[1, instance.d :].T
    return replace(instance, weights=replace(instance.weights, w_q=w_q))


def mutants(routing: str) -> tuple[Mutant, ...]:
    """Every way in which a filter bank could have been wrong by one step; ``routing`` ends the names of the claims."""
    return (
        Mutant("one output head fewer", without_last_head, (f"bank{routing}",)),
        Mutant("one power skipped between heads", skipping, (f"bank{routing}",)),
        Mutant("keys not transposed", untransposed, (f"bank{routing}",)),
        Mutant("no mixing weights", without_mixing, (f"parameters{routing}",)),
    )
