"""The weights of a layer in the index order of the formula, and how named tensors become them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from einops import rearrange
from torch import Tensor


class Weights(NamedTuple):
    """The weights of a layer in the index order of the formula; a bias is None where there is none.

    Attributes:
        q: (head, model, key). k: (kv head, model, key). v: (kv head, model, value). Base projections.
        q_bias, k_bias, v_bias: (head or kv head, key or value).
        alpha_q: (source, head, pseudo). alpha_k, alpha_v: (source kv head, kv head, pseudo).
        collapse: (out, head, pseudo).
        out: (model, out value), or None without an output projection. out_bias: (model,).
    """

    q: Tensor
    k: Tensor
    v: Tensor
    q_bias: Tensor | None
    k_bias: Tensor | None
    v_bias: Tensor | None
    alpha_q: Tensor
    alpha_k: Tensor
    alpha_v: Tensor
    collapse: Tensor
    out: Tensor | None
    out_bias: Tensor | None

    @property
    def heads(self) -> int:
        return self.q.shape[0]

    @property
    def pseudo(self) -> int:
        return self.alpha_q.shape[2]

    @property
    def projections(self) -> int:
        """Q, the number of parameters of the projections, the output's included."""
        given = (self.q, self.k, self.v, self.q_bias, self.k_bias, self.v_bias, self.out, self.out_bias)
        return sum(t.numel() for t in given if t is not None)

    @property
    def mixing(self) -> int:
        """The number of mixing parameters; 4 H^2 P where every head has its own keys."""
        return sum(t.numel() for t in (self.alpha_q, self.alpha_k, self.alpha_v, self.collapse))

    def to(self, dtype: torch.dtype) -> Weights:
        """Detached, in another dtype."""
        cast: list[Any] = [None if t is None else t.detach().to(dtype) for t in self]
        return Weights(*cast)


def checked(found: Any) -> Weights:
    """The weights, if their shapes fit one another.

    Raises:
        ValueError: they do not, or they are no :class:`Weights`.
    """
    if not isinstance(found, Weights):
        raise ValueError(f"adapter: the weights are a {type(found).__name__}, wanted iha_theory.conformance.Weights")
    axes = {"q": "head model key", "k": "kv model key", "v": "kv model value", "q_bias": "head key",
            "k_bias": "kv key", "v_bias": "kv value", "alpha_q": "head head pseudo", "alpha_k": "kv kv pseudo",
            "alpha_v": "kv kv pseudo", "collapse": "head head pseudo", "out": "any any", "out_bias": "any"}
    sizes: dict[str, int] = {}
    for name, pattern in axes.items():
        t, names = getattr(found, name), pattern.split()
        if t is None and name in ("q_bias", "k_bias", "v_bias", "out", "out_bias"):
            continue
        if not isinstance(t, Tensor) or t.dim() != len(names):
            shape = tuple(t.shape) if isinstance(t, Tensor) else type(t).__name__
            raise ValueError(f"adapter: {name} is {shape}, wanted the axes ({', '.join(names)})")
        for axis, size in zip(names, t.shape, strict=True):
            if axis != "any" and sizes.setdefault(axis, size) != size:
                raise ValueError(f"adapter: {name} has shape {tuple(t.shape)}, wanted {axis}={sizes[axis]} as in the "
                                 "weights before it")
    if sizes["head"] % sizes["kv"]:
        raise ValueError(f"adapter: {sizes['head']} heads, and {sizes['kv']} of keys and values; wanted a divisor")
    width = sizes["head"] * sizes["value"]
    if found.out is not None and found.out.shape[1] != width:
        raise ValueError(f"adapter: out has shape {tuple(found.out.shape)} as (model, feature), wanted {width} features; "
                         "say its axes with output=")
    return found


def arranged(name: str, t: Tensor, axes: str, wanted: str, **sizes: int) -> Tensor:
    """A tensor in the order of the formula.

    Raises:
        ValueError: its shape does not fit its axes.
    """
    used = {axis: size for axis, size in sizes.items() if axis in axes.replace("(", " ").replace(")", " ").split()}
    try:
        return rearrange(t, f"{axes} -> {wanted}", **used)
    except Exception as error:
        raise ValueError(f"adapter: {name} has shape {tuple(t.shape)}, which does not read as {axes!r} with {used}: "
                         f"{str(error).splitlines()[-1].strip()}") from error
