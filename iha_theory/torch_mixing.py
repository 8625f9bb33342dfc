"""The mixing weights alpha^Q, alpha^K, alpha^V and R as a module of their own, float32 at least."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Matrices(NamedTuple):
    """The mixing weights as matrices, ready to be multiplied with (batch, token, head, feature) from the left.

    ``q`` (Q H, H), ``k`` and ``v`` (P H_kv, H_kv), ``r`` (H, Q H); rows of q, k, v and columns of r are pseudo-major:
    pseudo * H + head, so that the product reads as (batch, token * pseudo, head, feature) without a copy.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    r: Tensor


class Mixing(nn.Module):
    """alpha and R: the parameters that make interleaved heads of base heads.

    They stay in float32 (or float64) when the layer is moved to bfloat16 or float16, as masters for the optimiser; the
    forward pass casts them. A module of its own can be a group of its own where all parameters of a group must have
    one dtype (``fully_shard(layer.mixing)`` before ``fully_shard(layer)``).

    Attributes:
        alpha_q: (source, head, pseudo), (H, H, P).
        alpha_k, alpha_v: (source kv head, kv head, pseudo), (H_kv, H_kv, P).
        collapse: (out, head, pseudo), (H, H, P): R, whose column h P + j is [head h, pseudo j].
        active: None, or after ``freeze`` (Q, H): the pseudo-queries of each head that are computed.
    """

    def __init__(self, heads: int, kv_heads: int, pseudo: int, *, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        dtype = torch.promote_types(dtype or torch.get_default_dtype(), torch.float32)
        self.heads, self.kv_heads, self.pseudo = heads, kv_heads, pseudo
        self.alpha_q = nn.Parameter(torch.empty(heads, heads, pseudo, device=device, dtype=dtype))
        self.alpha_k = nn.Parameter(torch.empty(kv_heads, kv_heads, pseudo, device=device, dtype=dtype))
        self.alpha_v = nn.Parameter(torch.empty(kv_heads, kv_heads, pseudo, device=device, dtype=dtype))
        self.collapse = nn.Parameter(torch.empty(heads, heads, pseudo, device=device, dtype=dtype))
        self.register_buffer("active", None, persistent=False)
        self.active: Tensor | None
        self._same_for_all_heads = False
        self.limits: tuple[int, ...] = tuple(range(pseudo))
        self.register_load_state_dict_post_hook(_refreeze)

    @property
    def is_frozen(self) -> bool:
        return self.active is not None

    @property
    def pseudo_queries(self) -> int:
        """Q: how many pseudo-queries of a token are computed."""
        return len(self.limits)

    def forward(self, dtype: torch.dtype) -> Matrices:
        """Fresh copies in the dtype of the computation."""
        q, r = self.alpha_q.permute(2, 1, 0), self.collapse.permute(0, 2, 1)
        if self.active is not None:
            head = torch.arange(self.heads, device=self.active.device)
            q, r = q[self.active, head], r[:, self.active, head]
        k, v = self.alpha_k.permute(2, 1, 0), self.alpha_v.permute(2, 1, 0)
        return Matrices(_flat_copy(q, 0, dtype), _flat_copy(k, 0, dtype), _flat_copy(v, 0, dtype),
                        _flat_copy(r, 1, dtype))

    @torch.no_grad()
    def freeze(self, *, same_for_all_heads: bool) -> None:
        """Stop training alpha and R, and find the pseudo-queries that R ignores; they are skipped from now on.

        Args:
            same_for_all_heads: keep a pseudo-query for all heads if one needs it (the flat mask's order wants that).
        """
        read = (self.collapse != 0).any(0)
        self._same_for_all_heads = same_for_all_heads
        if same_for_all_heads:
            read = read.any(0, keepdim=True).expand_as(read)
        # At least one stays; a head with fewer than the others keeps some that R ignores.
        size = max(1, int(read.sum(1).max()))
        order = torch.sort(torch.argsort((~read).int(), dim=1, stable=True)[:, :size], dim=1).values
        self.limits = tuple(order[0].tolist()) if same_for_all_heads else tuple(range(size))
        self.active = order.T.contiguous()
        self.requires_grad_(False)

    def unfreeze(self) -> None:
        """Train alpha and R again, and compute all pseudo-queries."""
        self.active, self.limits = None, tuple(range(self.pseudo))
        self.requires_grad_(True)

    def virtual(self, positions: Tensor, *, queries: bool) -> Tensor:
        """(batch, token) to (batch, token * pseudo, head or 1): position n P + j of each pseudo-query or pseudo-key."""
        j = torch.arange(self.pseudo, device=positions.device)[:, None]
        if queries and self.active is not None:
            j = self.active
        return (positions[:, :, None, None] * self.pseudo + j).flatten(1, 2)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Mixing:
        def keeping_precision(t: Tensor) -> Tensor:
            result = fn(t)
            if result.is_floating_point() and t.is_floating_point() and result.dtype.itemsize < 4:
                return t.to(result.device)
            return result

        return super()._apply(keeping_precision, recurse)  # type: ignore[return-value]

    def extra_repr(self) -> str:
        return (f"heads={self.heads}, kv_heads={self.kv_heads}, pseudo={self.pseudo}, "
                f"pseudo_queries={self.pseudo_queries}")


def _refreeze(module: nn.Module, _: Any) -> None:
    """Loaded weights may read other pseudo-queries than the old ones did."""
    if isinstance(module, Mixing) and module.is_frozen:
        module.freeze(same_for_all_heads=module._same_for_all_heads)


def _flat_copy(t: Tensor, first: int, dtype: torch.dtype) -> Tensor:
    """Axes ``first`` and the next made one, as a contiguous copy.

    Not a view: a sharded group gives its parameters back when its forward returns, and has its backward hook on what
    it returned, which writing into a view would lose.
    """
    size, following = t.shape[first : first + 2]
    flat = t.flatten(first, first + 1)
    if size == 1 or following == 1 or t.stride(first) == following * t.stride(first + 1):
        flat = flat.clone(memory_format=torch.contiguous_format)
    return flat.to(dtype)


def mixed(base: Tensor, matrix: Tensor) -> Tensor:
    """(batch, token, source, feature) to (batch, token * pseudo, head, feature), interleaved.

    A product for each token, spelt out: ``matmul`` would make one product of all tokens, of transposed copies.

    Args:
        base: (batch, token, source, feature). matrix: (pseudo * head, source).
    """
    batch, tokens, source, feature = base.shape
    if batch * tokens == 1:
        # A decoder's step, where every call counts.
        return torch.mm(matrix, base.reshape(source, feature)).view(1, matrix.shape[0] // source, source, feature)
    product = torch.bmm(matrix.expand(batch * tokens, -1, -1), base.reshape(batch * tokens, source, feature))
    return product.view(batch, tokens * (matrix.shape[0] // source), source, feature)


def collapsed(attended: Tensor, r: Tensor) -> Tensor:
    """(batch, token * pseudo, head, value), interleaved, to the output heads side by side, (batch, token, out * value).

    Args:
        attended: (batch, token * pseudo, head, value). r: (out, pseudo * head).
    """
    batch, virtual, heads, value = attended.shape
    tokens = virtual * heads // r.shape[1]
    if batch * tokens == 1:
        return torch.mm(r, attended.reshape(r.shape[1], value)).view(1, 1, r.shape[0] * value)
    product = torch.bmm(r.expand(batch * tokens, -1, -1), attended.reshape(batch * tokens, r.shape[1], value))
    return product.view(batch, tokens, r.shape[0] * value)
