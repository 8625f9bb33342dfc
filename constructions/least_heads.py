"""The layers that meet the lower bounds: for each output convention, the bank with the fewest heads there can be.

Conventions. *Free*: every target column is some column of some head, each head of its own width, in any order.
*Ordered*: the heads side by side begin with the target, columns in order; widths free, or one width for all heads.
*Projected*: an output projection W_O follows.

A layer's heads have one width in their arrays; a head of a smaller width is padded with zero columns that the target
skips. Every layer here reads positions in queries and keys only, [X, I] being the input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from constructions.blocks import full_cover, lifted, powers, routing, unit_like, zeros_like
from constructions.power_structure import Powers
from iha_theory.attention import linear
from iha_theory.count import ceil_sqrt
from iha_theory.layer import IHA, forward, multi_head


@dataclass(frozen=True)
class Placed:
    """A layer and where the target stands in its output: in these columns, or after this projection.

    ``columns`` has one entry for each target column; None says that the target comes first. ``projection`` is
    (out * value, k d).
    """

    weights: IHA
    columns: tuple[int, ...] | None = None
    projection: np.ndarray | None = None

    def output(self, x: np.ndarray, width: int) -> np.ndarray:
        """The target as the layer computes it from [X, I]: (n, width)."""
        heads = forward(self.weights, x, linear)
        if self.projection is not None:
            return heads @ self.projection
        return heads[:, :width] if self.columns is None else heads[:, list(self.columns)]


def _positional(a: np.ndarray, operators: list[np.ndarray], w_v: np.ndarray, d: int) -> IHA:
    """Multi-head attention whose head h applies the given operator: W_Q = [0; E_h], W_K = [0; I]."""
    n, heads = a.shape[0], len(operators)
    w_q, w_k = zeros_like(a, (heads, d + n, n)), zeros_like(a, (heads, d + n, n))
    for h, operator in enumerate(operators):
        w_q[h, d:], w_k[h, d:] = operator, unit_like(a, n)
    return multi_head(w_q, w_k, w_v)


def _factor(structure: Powers, power: int, operator: int) -> Any:
    """c with A^power = c A^operator, for two powers of one class, or a zero power, where c is 0.

    M = qA, and the classes hold M^power = f M^r and M^operator = g M^r: then c = (f / g) / q^(power - operator).
    """
    f, g = (structure.classes[i].factor for i in (power, operator))
    return f / g / structure.scale ** (power - operator)


def _classes(structure: Powers, a: np.ndarray, d: int, heads_of: list[int], operators: list[int]) -> Placed:
    """Head ``heads_of[i]`` serves power i as a multiple of its operator, the power ``operators[head]``."""
    members: dict[int, list[int]] = {}
    for power, head in enumerate(heads_of):
        members.setdefault(head, []).append(power)
    width = d * max(len(group) for group in members.values())
    n = a.shape[0]
    w_v = zeros_like(a, (len(operators), d + n, width))
    columns = [0] * (len(heads_of) * d)
    for head, group in members.items():
        for place, power in enumerate(group):
            factor = _factor(structure, power, operators[head])
            w_v[head, :d, place * d : (place + 1) * d] = lifted(np.eye(d, dtype=int).astype(object) * factor, a)
            for c in range(d):
                columns[power * d + c] = head * width + place * d + c
    known = powers(a, max(operators) + 1)
    return Placed(_positional(a, [known[m] for m in operators], w_v, d), tuple(columns))


def free(structure: Powers, a: np.ndarray, d: int) -> Placed:
    """rho heads, one for each class of proportional powers; a zero power is a zero column of head 0."""
    representatives = list(structure.representatives)
    heads_of = [representatives.index(c.representative) if c.factor != 0 else 0 for c in structure.classes]
    return _classes(structure, a, d, heads_of, representatives)


def ordered(structure: Powers, a: np.ndarray, d: int) -> Placed:
    """min(k, tau) heads: head t holds A^t, and the last one the multiples of it that follow."""
    heads = min(structure.k, structure.tau or structure.k)
    return _classes(structure, a, d, [min(i, heads - 1) for i in range(structure.k)], list(range(heads)))


def one_width(structure: Powers, a: np.ndarray, d: int) -> Placed:
    """One head if A is a multiple of the identity, else k heads of width d."""
    if structure.is_scalar:
        return ordered(structure, a, d)
    n, k = a.shape[0], structure.k
    w_v = zeros_like(a, (k, d + n, d))
    w_v[:, :d] = unit_like(a, d)
    return Placed(_positional(a, powers(a, k), w_v, d))


def projected(structure: Powers, a: np.ndarray, d: int) -> Placed:
    """s heads for I, ..., A^(s-1), and a projection that combines them into every power."""
    n, s = a.shape[0], structure.s
    w_v = zeros_like(a, (s, d + n, d))
    w_v[:, :d] = unit_like(a, d)
    return Placed(_positional(a, powers(a, s), w_v, d), projection=_combining(a, d, structure.in_basis))


def _combining(a: np.ndarray, d: int, coefficients: np.ndarray) -> np.ndarray:
    """(rows d, k d): column block i is the combination of the row blocks with the coefficients of A^i."""
    projection = np.kron(coefficients.T, np.eye(d, dtype=int).astype(object))
    return lifted(projection, a)


def iha(structure: Powers, a: np.ndarray, d: int) -> Placed:
    """min(s, ceil(sqrt k)) heads of IHA with P = H, columns in order and one width.

    With ceil(sqrt k) heads it is the construction of Theorem 3. With s < ceil(sqrt k) heads, head h holds the powers
    hL, ..., hL + L - 1, L = ceil(k/s): base value m writes c_(l,m) X into block l, A^l = sum_m c_(l,m) A^m.
    """
    heads = min(structure.s, ceil_sqrt(structure.k))
    return Placed(_iha(structure, a, d, heads, -(-structure.k // heads)))


def iha_projected(structure: Powers, a: np.ndarray, d: int) -> Placed:
    """ceil(sqrt s) heads of IHA with P = H for I, ..., A^(H^2-1), and a projection to every power."""
    heads = ceil_sqrt(structure.s)
    coefficients = np.concatenate(
        [structure.in_basis, np.full((structure.k, heads**2 - structure.s), 0, dtype=object)], axis=1)
    return Placed(_iha(structure, a, d, heads, heads),
                  projection=_combining(a, d, coefficients))


def _iha(structure: Powers, a: np.ndarray, d: int, heads: int, blocks: int) -> IHA:
    n = a.shape[0]
    small = powers(a, max(heads, blocks) + 1)
    large = powers(small[blocks], heads)
    w_q, w_k = zeros_like(a, (heads, d + n, n)), zeros_like(a, (heads, d + n, n))
    w_v = zeros_like(a, (heads, d + n, d * blocks))
    for m in range(heads):
        w_q[m, d:], w_k[m, d:] = large[m], small[m].T
        for block in range(blocks):
            c = structure.in_basis[block, m]
            w_v[m, :d, block * d : (block + 1) * d] = lifted(np.eye(d, dtype=int).astype(object) * c, a)
    return IHA(w_q, w_k, w_v, **routing(full_cover(heads), a))


@dataclass(frozen=True)
class Convention:
    """An output convention: the least number of heads, what shows that fewer do not suffice, and the layer that meets it.

    Attributes:
        least: the number from s, rho, tau. because: the reason, in the numbers of the case. meets: builds the layer.
    """

    title: str
    least: Callable[[Powers], int]
    because: Callable[[Powers], str]
    meets: Callable[[Powers, np.ndarray, int], Placed]
    paper: str


def _head_zero(p: Powers) -> str:
    fewer = min(p.s, ceil_sqrt(p.k)) - 1
    if not fewer:
        return "at least one head"
    held = min(p.s, -(-p.k // fewer))
    return f"with {fewer}, head 0 would hold {held} independent powers, but one output head reads {fewer} operators"


def _neighbours(p: Powers) -> str:
    heads = min(p.k, p.tau or p.k)
    return f"the first {heads} powers: neighbours are not proportional" if heads > 1 else "at least one head"


CONVENTIONS: Mapping[str, Convention] = {
    "free": Convention(
        "multi-head, columns placed freely", lambda p: p.rho,
        lambda p: f"{p.rho} classes of proportional powers; one head serves one class", free, "k"),
    "ordered": Convention(
        "multi-head, columns in order", lambda p: min(p.k, p.tau or p.k), _neighbours, ordered, "k"),
    "one-width": Convention(
        "multi-head, in order, one width", lambda p: 1 if p.k == 1 or p.is_scalar else p.k,
        lambda p: "at least one head" if p.k == 1 or p.is_scalar else
        "head 0 holds X, so by its class it cannot hold a column of AX: its width is at most d", one_width, "k"),
    "projected": Convention(
        "multi-head, with output projection", lambda p: p.s,
        lambda p: f"[x, Ax, ..., A^{p.s - 1} x] has rank {p.s} at the certificate's x", projected, "k"),
    "iha": Convention(
        "IHA, in order, one width", lambda p: min(p.s, ceil_sqrt(p.k)),
        lambda p: _head_zero(p), iha, "ceil(sqrt k)"),
    "iha-projected": Convention(
        "IHA, with output projection", lambda p: ceil_sqrt(p.s), lambda p: f"H^2 >= s = {p.s}", iha_projected,
        "ceil(sqrt k)"),
}
