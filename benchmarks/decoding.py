"""Decoding one token with a cache, beside its floor; and a cache of base keys and values beside one of mixed ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.layer import Size, layer
from benchmarks.tables import Case, Effort, Rows, Table, Work, compared
from iha_theory.torch_kernels import softmax_attention
from iha_theory.torch_masks import Sight
from iha_theory.torch_mixing import collapsed, mixed

STEPS = (Size(1, 1, 256, 8, 8), Size(1, 1, 512, 8, 2), Size(4, 1, 512, 8, 2))
CACHED = (1024, 4096)
#: Calls that are timed together: a step takes about a millisecond.
_REPEAT = 5


def step(size: Size, cached: int, mask: str, **made: Any) -> Work:
    """One token after ``cached`` others, on a device and in a dtype; the cache is set back after every step."""
    module = layer(size, mask=mask, **made).eval().requires_grad_(False)
    cache = module.new_cache(size.batch, cached + 1)
    cache.k.normal_()
    cache.v.normal_()
    x = torch.randn(size.batch, 1, size.d, **made)

    def work() -> Tensor:
        cache.tokens = cache.kept = cached
        with torch.no_grad():
            return module(x, need_weights=False, cache=cache)[0]

    return work


def floor(size: Size, cached: int, **made: Any) -> Work:
    """The four projections of a token, and the fused kernel for P queries against the mixed keys of all tokens."""
    torch.manual_seed(0)
    projections = torch.nn.ModuleList(torch.nn.Linear(size.d, size.d, **made) for _ in range(4)).requires_grad_(False)
    x = torch.randn(size.batch, 1, size.d, **made)
    q = torch.randn(size.batch, size.h, size.p, size.d // size.h, **made)
    k, v = (torch.randn(size.batch, size.h, (cached + 1) * size.p, size.d // size.h, **made) for _ in range(2))

    def work() -> None:
        with torch.no_grad():
            for projection in projections:
                projection(x)
            F.scaled_dot_product_attention(q, k, v)

    return work


class Steps:
    """The same step, token-causal, with the two caches; nothing but the cache differs.

    Attributes:
        base: k and v, (batch, head, token, feature), before mixing; every step mixes all of them, in one product whose
            result is read as (batch, head, pseudo * token, feature) without a copy: order is nothing to this mask.
        ready: the same after mixing, (batch, head, token * pseudo, feature), preallocated; a step mixes one token's.
    """

    def __init__(self, size: Size, cached: int) -> None:
        self.size, self.tokens = size, cached + 1
        self.module = layer(size, mask="token", init="uniform").eval().requires_grad_(False)
        self.matrices = self.module.mixing(torch.float32)
        self.x = torch.randn(size.batch, 1, size.d)
        heads, width = size.h, size.d // size.h
        self.base = [torch.randn(size.batch, heads, self.tokens, width) for _ in range(2)]
        self.ready = [mixed(t.transpose(1, 2), m).transpose(1, 2).contiguous()
                      for t, m in zip(self.base, (self.matrices.k, self.matrices.v), strict=True)]
        # Rows head * P + pseudo, so that a head's products lie side by side.
        self.by_head = [m.unflatten(0, (size.p, heads)).transpose(0, 1).flatten(0, 1).contiguous()
                        for m in (self.matrices.k, self.matrices.v)]
        self.sight = Sight(1, self.tokens, size.p, size.p, (size.p - 1,) * size.p)

    def _new(self) -> tuple[Tensor, list[Tensor]]:
        """The token's pseudo-queries and its base key and value."""
        module, shape = self.module, (self.size.batch, 1, self.size.h, self.size.d // self.size.h)
        q = mixed(module.q_proj(self.x).view(shape), self.matrices.q).transpose(1, 2)
        return q, [projection(self.x).view(shape) for projection in (module.k_proj, module.v_proj)]

    def _end(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        attended = softmax_attention(q, k, v, self.sight, self.module.scale)
        output = collapsed(attended.transpose(1, 2), self.matrices.r)
        return self.module.out_proj(output) if self.module.out_proj is not None else output

    @torch.no_grad()
    def from_mixed(self) -> Tensor:
        """One step with the cache of mixed keys and values."""
        q, new = self._new()
        for cache, t, matrix in zip(self.ready, new, (self.matrices.k, self.matrices.v), strict=True):
            cache[:, :, -self.size.p :] = mixed(t, matrix).transpose(1, 2)
        return self._end(q, *self.ready)

    @torch.no_grad()
    def from_base(self) -> Tensor:
        """One step with the cache of base keys and values."""
        q, new = self._new()
        keys = []
        for cache, t, matrix in zip(self.base, new, self.by_head, strict=True):
            cache[:, :, -1:] = t.transpose(1, 2)
            product = matrix @ cache.flatten(2)
            keys.append(product.view(self.size.batch, self.size.h, -1, cache.shape[3]))
        return self._end(q, *keys)

    def kib_per_token(self) -> tuple[float, float]:
        """What the mixed cache and the base cache keep for each token and sequence."""
        mine, base = (sum(t[0].numel() * t.element_size() for t in cache) / self.tokens / 1024
                      for cache in (self.ready, self.base))
        return mine, base


def _beside_floor(size: Size, cached: int, mask: str, effort: Effort) -> tuple[float, float, float]:
    mine, base, ratio = compared(step(size, cached, mask), floor(size, cached), effort, repeat=_REPEAT)
    return mine * 1e3, base * 1e3, ratio


def _two_caches(size: Size, cached: int, effort: Effort) -> tuple[float, ...]:
    steps = Steps(size, cached)
    if not torch.allclose(steps.from_mixed(), steps.from_base(), atol=1e-4):
        raise ValueError(f"the two caches give different outputs at {tuple(size)} after {cached}; nothing to compare")
    base, mine, ratio = compared(steps.from_base, steps.from_mixed, effort, repeat=_REPEAT)
    return mine * 1e3, base * 1e3, ratio, *steps.kib_per_token()


def cheaper(rows: Rows) -> Sequence[str]:
    """Which cache is faster, and by how much."""
    ratios = [row[2] for row in rows.values()]
    return (f"A step with the base cache takes {min(ratios):.2f} to {max(ratios):.2f} times as long as with the mixed "
            f"one (the mixed one is faster in {sum(r > 1 for r in ratios)} of {len(ratios)} rows), and its memory is 1/P "
            "of the mixed one's.",)


def tables(effort: Effort) -> tuple[Table, ...]:
    """What is measured of decoding."""
    lengths = [(p, cached) for p in (2, 4, 8) for cached in CACHED]
    return (
        Table("layer", "Decoding one token beside its floor",
              "(batch, 1, D, H, P), float32, a preallocated cache. The floor is the four projections of one token and the "
              "fused kernel for P ready-made queries against ready-made mixed keys and values of all tokens.",
              ("ms", "floor, ms", "ratio"),
              tuple(Case(f"{tuple(size)}, {mask}, after {cached} tokens",
                         partial(_beside_floor, size, cached, mask, effort), {"ratio": 1.25})
                    for size in STEPS for mask in ("token", "flat") for cached in CACHED)),
        Table("layer", "Caches of mixed and of base keys and values",
              "One token-causal step, D=512, H=8, float32. Base: keys and values before mixing are kept, and each step "
              "mixes all of them. Mixed: pseudo-keys and -values are kept, and each step mixes those of its token.",
              ("mixed, ms", "base, ms", "base / mixed, ratio", "mixed, KiB per token", "base, KiB per token"),
              tuple(Case(f"batch {batch}, P={p}, after {cached} tokens",
                         partial(_two_caches, Size(batch, 1, 512, 8, p), cached, effort))
                    for batch in (1, 4) for p, cached in lengths), cheaper),
    )
