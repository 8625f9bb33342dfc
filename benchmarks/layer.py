"""The torch layer's speed beside its floor, and how a window's time grows.

The floor of a layer at (batch, N, D, H, P) is the four projections of N tokens, and the fused kernel on ready-made
tensors of N P virtual tokens with the same heads: with no mask, or with its causal flag.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from benchmarks.tables import Case, Effort, Rows, Table, Work, compared, line_fit, median_seconds
from iha_theory.torch_layer import InterleavedHeadAttention


class Size(NamedTuple):
    """Batch, tokens, features, heads, pseudo-heads."""

    batch: int
    n: int
    d: int
    h: int
    p: int


#: Where the bars hold.
SIZES = (Size(1, 256, 256, 8, 8), Size(2, 512, 256, 8, 2), Size(1, 1024, 512, 8, 2))


def layer(size: Size, **options: Any) -> InterleavedHeadAttention:
    """The layer of a size, batch first."""
    torch.manual_seed(0)
    return InterleavedHeadAttention(size.d, size.h, size.p, batch_first=True, **options)


def call(size: Size, mask: str, *, window: int | None = None, padded: bool = False, frozen: bool = False,
         backward: bool = True) -> Work:
    """One call of the layer, with its backward pass or under no_grad."""
    module = layer(size, mask=mask, window=window)
    if frozen:
        module.freeze_mixing()
    x = torch.randn(size.batch, size.n, size.d, requires_grad=backward)
    padding = None
    if padded:
        padding = torch.zeros(size.batch, size.n, dtype=torch.bool)
        padding[:, -size.n // 8 :] = True
    grad = torch.randn(size.batch, size.n, size.d)

    def work() -> None:
        with torch.set_grad_enabled(backward):
            out, _ = module(x, key_padding_mask=padding, need_weights=False)
        if backward:
            out.backward(grad)
            module.zero_grad(set_to_none=True)
            x.grad = None

    return work


def floor(size: Size, *, is_causal: bool, backward: bool = True) -> Work:
    """Four projections of N tokens, and the fused kernel on ready-made tensors of N P virtual tokens."""
    torch.manual_seed(0)
    projections = torch.nn.ModuleList(torch.nn.Linear(size.d, size.d) for _ in range(4))
    x, y = (torch.randn(size.batch, size.n, size.d, requires_grad=backward) for _ in range(2))
    q, k, v = (torch.randn(size.batch, size.h, size.n * size.p, size.d // size.h, requires_grad=backward)
               for _ in range(3))
    grad, virtual = torch.randn_like(x), torch.randn_like(q)

    def work() -> None:
        with torch.set_grad_enabled(backward):
            outs = [*(projection(x) for projection in projections[:3]), projections[3](y)]
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        if backward:
            torch.autograd.backward([*outs, attended], [*(grad for _ in outs), virtual])
            projections.zero_grad(set_to_none=True)
            for t in (x, y, q, k, v):
                t.grad = None

    return work


Kind = tuple[str, dict[str, Any], bool]


def kinds(n: int) -> tuple[Kind, ...]:
    """What is measured of N tokens: a name, the options of :func:`call`, whether its floor is causal."""
    return (("no mask", {"mask": "none"}, False), ("flat", {"mask": "flat"}, True), ("token", {"mask": "token"}, True),
            (f"flat, window {n // 8}", {"mask": "flat", "window": n // 8}, True),
            (f"token, window {n // 2}", {"mask": "token", "window": n // 2}, True),
            ("flat, right-padded", {"mask": "flat", "padded": True}, True),
            ("token, right-padded", {"mask": "token", "padded": True}, True))


def bar(name: str, *, backward: bool) -> float:
    """The most that the ratio of a kind should be."""
    return (1.15 if backward else 1.10) if name in ("no mask", "flat") else 1.25


def _beside_floor(size: Size, options: dict[str, Any], causal: bool, backward: bool,
                  effort: Effort) -> tuple[float, float, float]:
    mine, base, ratio = compared(call(size, backward=backward, **options),
                                 floor(size, is_causal=causal, backward=backward), effort)
    return mine * 1e3, base * 1e3, ratio


def _cases(effort: Effort) -> tuple[Case, ...]:
    return tuple(
        Case(f"{tuple(size)}, {name}, {'forward and backward' if backward else 'forward'}",
             partial(_beside_floor, size, options, causal, backward, effort), {"ratio": bar(name, backward=backward)})
        for size in SIZES for name, options, causal in kinds(size.n) for backward in (False, True))


def _frozen_cases(effort: Effort) -> tuple[Case, ...]:
    return tuple(Case(f"{tuple(size)}, {mask}, frozen mixing, forward",
                      partial(_beside_floor, size, {"mask": mask, "frozen": True}, causal, False, effort))
                 for size in SIZES for mask, causal in (("none", False), ("token", True)))


def _windowed(n: int, effort: Effort) -> tuple[float, float]:
    taken = median_seconds(call(Size(1, n, 256, 8, 2), "flat", window=64), effort)
    return taken * 1e3, taken / n * 1e6


def window_growth(rows: Rows) -> Sequence[str]:
    """The line through the times of a window."""
    n = [float(name.removeprefix("N=")) for name in rows]
    start, slope, off = line_fit(n, [row[0] for row in rows.values()])
    return (f"Least squares: {start:.2f} ms + {slope * 1e3:.2f} us N; no time is further than {off:.0%} from that line. "
            f"From N={n[0]:.0f} to N={n[-1]:.0f} the time for a token changes by a factor of "
            f"{list(rows.values())[-1][1] / next(iter(rows.values()))[1]:.2f}; if time grew as N^2, it would be "
            f"{n[-1] / n[0]:.0f}.",)


def tables(effort: Effort) -> tuple[Table, ...]:
    """What is timed of whole passes."""
    beside = ("ms", "floor, ms", "ratio")
    return (
        Table("layer", "The layer beside its floor",
              "(batch, N, D, H, P), float32. The floor is four projections of N tokens and the fused kernel on ready-made "
              "tensors of N P virtual tokens with the same heads, with its causal flag or without. A padded call hides "
              "the last eighth of the tokens; its floor does not.", beside, _cases(effort)),
        Table("layer", "The layer with frozen mixing beside its floor",
              "After `freeze_mixing()` the pseudo-queries that R ignores are skipped: at the `mha` initialisation all "
              "but one of P. The floor still has all of them, so the ratio may be below one.", beside,
              _frozen_cases(effort)),
        Table("layer", "Growth of a windowed layer",
              "flat, window of 64 tokens, batch 1, D=256, H=8, P=2, forward and backward.", ("ms", "us per token"),
              tuple(Case(f"N={n}", partial(_windowed, n, effort)) for n in (512, 1024, 2048, 4096, 8192)),
              window_growth),
    )
