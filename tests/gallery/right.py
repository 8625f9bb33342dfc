"""Layers that are what they say: no row may differ on them, but for what is written with its reason."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from iha_theory.conformance import Adapter
from iha_theory.torch_layer import InterleavedHeadAttention
from tests.gallery.entry import DECODES, Right, claims, rows, seeded
from tests.gallery.plain import Plain

UP_TO_4 = (1, 2, 3, 4)
MASKS = ("none", "token", "flat")
#: An adapter's names for multi-head attention, which mixes nothing.
UNMIXED: dict[str, Any] = {"claims": "mha", "alpha_q": None, "alpha_k": None, "alpha_v": None, "collapse": None,
                           "pseudo": 1}


class ByHand(nn.Module):
    """Multi-head attention from torch's kernel."""

    def __init__(self, embed_dim: int, num_heads: int, *, causal: bool) -> None:
        super().__init__()
        self.embed_dim, self.num_heads, self.causal = embed_dim, num_heads, causal
        self.q_proj, self.k_proj = nn.Linear(embed_dim, embed_dim), nn.Linear(embed_dim, embed_dim)
        self.v_proj, self.out_proj = nn.Linear(embed_dim, embed_dim), nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        q, k, v = (projection(x).unflatten(2, (self.num_heads, -1)).transpose(1, 2)
                   for projection in (self.q_proj, self.k_proj, self.v_proj))
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
        seen = (seen.tril() if self.causal else seen)[None, None]
        if key_padding_mask is not None:
            seen = seen & ~key_padding_mask[:, None, None]
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.out_proj(attended.transpose(1, 2).flatten(2))


def by_hand(embed_dim: int, heads: int, causal: bool) -> Callable[[Tensor], Tensor]:
    """The same as a function of x alone, with fixed weights."""
    fixed = torch.randn(4, embed_dim, embed_dim, dtype=torch.float64) / embed_dim**0.5

    def attention(x: Tensor) -> Tensor:
        w_q, w_k, w_v, w_o = fixed.to(x.dtype)
        q, k, v = ((x @ w).unflatten(2, (heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2) @ w_o

    return attention


def plain(name: str, *, heads_of: tuple[int, ...] = UP_TO_4, pseudo_of: tuple[int, ...] = UP_TO_4,
          masks: tuple[str, ...] = MASKS, starts: bool = True, windowed: bool = False, differs: str = "",
          note: str = "", **options: Any) -> Right:
    """:class:`Plain` of a random shape, under one of the masks."""
    def make(seed: int) -> tuple[nn.Module, Adapter]:
        draw = random.Random(seed)
        heads, count, width = draw.choice(heads_of), draw.choice(pseudo_of), draw.choice((2, 4, 6))
        mask, window = draw.choice(masks), draw.randint(1, 4) if windowed else None
        layer = seeded(seed, lambda: Plain(heads * width, heads, count, mask=mask, window=window, **options))
        return layer, claims(layer, starts_as_mha=starts, **({} if mask == "none" else DECODES))

    return Right(f"plain, {name}", make, rows(differs), note)


def ours(name: str, *, heads_of: tuple[int, ...] = UP_TO_4, pseudo_of: tuple[int, ...] = UP_TO_4,
         masks: tuple[str, ...] = MASKS, windowed: bool = False, grouped: bool = False, free: bool = False,
         square: bool = False, batch_first: bool | None = None, differs: str = "", note: str = "", **options: Any) -> Right:
    """The project's layer of a random shape, as it comes: no adapter.

    Args:
        grouped: half as many heads of keys and values. free: head_dim and value_dim as they come.
        square: without an output projection, the heads side by side being as wide as the input.
    """
    def make(seed: int) -> tuple[nn.Module, None]:
        draw = random.Random(seed)
        heads, count, width = draw.choice(heads_of), draw.choice(pseudo_of), draw.choice((2, 4, 6))
        more: dict[str, Any] = {"mask": draw.choice(masks)}
        if windowed:
            more["window"] = draw.randint(1, 4)
        if grouped:
            more["num_kv_heads"], heads = heads, 2 * heads
        if free:
            more["head_dim"], more["value_dim"] = draw.randint(1, 7), draw.randint(1, 7)
        if square:
            more["out_proj"], more["value_dim"], more["head_dim"] = False, width, draw.randint(1, 7)
        first = draw.random() < 0.5 if batch_first is None else batch_first
        return seeded(seed, lambda: InterleavedHeadAttention(heads * width, heads, count, batch_first=first, **more,
                                                             **options)), None

    return Right(f"ours, {name}", make, rows(differs), note)


def torchs(name: str, *, batch_first: bool, heads_of: tuple[int, ...] = UP_TO_4, bias: bool = True,
           differs: str = "", note: str = "") -> Right:
    """``nn.MultiheadAttention`` of a random shape, as it comes."""
    def make(seed: int) -> tuple[nn.Module, None]:
        draw = random.Random(seed)
        heads, width = draw.choice(heads_of), draw.choice((2, 3, 4, 6))
        return seeded(seed, lambda: nn.MultiheadAttention(heads * width, heads, batch_first=batch_first,
                                                          bias=bias)), None

    return Right(f"torch, {name}", make, rows(differs), note)


def sdpa_module(seed: int) -> tuple[nn.Module, Adapter]:
    draw = random.Random(seed)
    heads, width, causal = draw.randint(1, 4), draw.choice((2, 3, 4, 6)), draw.random() < 0.5
    layer = seeded(seed, lambda: ByHand(heads * width, heads, causal=causal))
    return layer, Adapter(mask="token" if causal else "none", **UNMIXED)


def sdpa_function(seed: int) -> tuple[Callable[[Tensor], Tensor], Adapter]:
    draw = random.Random(seed)
    heads, width, causal = draw.randint(1, 4), draw.choice((2, 3, 4, 6)), draw.random() < 0.5
    return seeded(seed, lambda: by_hand(heads * width, heads, causal)), Adapter(
        claims="mha", features=heads * width, padding=False, white_box=False)


ONE_HEAD = "With one head all operators are multiples of one: nothing to be more than."
RIGHT: tuple[Right, ...] = (
    plain("no mask", masks=("none",)),
    plain("token mask", masks=("token",)),
    plain("flat mask", masks=("flat",)),
    plain("window", masks=MASKS[1:], windowed=True),
    plain("rotary tokens", rope="token"),
    plain("rotary virtual tokens", rope="virtual", starts=False),
    plain("linear", attention="linear", heads_of=(2, 3, 4)),
    plain("linear, one head", attention="linear", heads_of=(1,), pseudo_of=(2, 3, 4), note=ONE_HEAD),
    plain("one pseudo-head", pseudo_of=(1,)),
    ours("no mask", masks=("none",)),
    ours("token mask", masks=("token",)),
    ours("flat mask", masks=("flat",)),
    ours("window", masks=MASKS[1:], windowed=True),
    ours("rotary tokens", rope="token"),
    ours("rotary virtual tokens", rope="virtual"),
    ours("linear", attention="linear", heads_of=(2, 3, 4)),
    ours("linear, one head", attention="linear", heads_of=(1,), pseudo_of=(2, 3, 4), note=ONE_HEAD),
    ours("hard", attention="hard",
         note="Queries and keys have no gradient, which is no fault: hard weights are constant but for jumps."),
    ours("noise", init="noise"),
    ours("uniform", init="uniform"),
    ours("grouped keys and values", grouped=True,
         note="Fewer than Q + 4 H^2 P: alpha of G heads of keys and values has G^2 P entries each, and is counted so."),
    ours("no bias", bias=False),
    ours("no output projection", square=True),
    ours("free widths", free=True),
    ours("batch first", batch_first=True),
    ours("dropout in training", dropout=0.4),
    ours("temperature", temperature=0.5),
    ours("chunked", kernel="chunked"),
    ours("one pseudo-head", pseudo_of=(1,)),
    torchs("batch first, even heads", batch_first=True, heads_of=(2, 4), differs="dead rows",
           note="Its path for inference (no gradients, batch first, biases, heads even in number) divides 0 by 0."),
    torchs("batch first, odd heads", batch_first=True, heads_of=(1, 3)),
    torchs("token first", batch_first=False),
    torchs("no bias", batch_first=False, bias=False),
    Right("kernel, as a module", sdpa_module),
    Right("kernel, as a function", sdpa_function),
)
