"""Rotary position embedding in the pairing of :func:`iha_theory.rotary`: features (2 i, 2 i + 1) turn together."""

from __future__ import annotations

import torch
from torch import Tensor


def turned(t: Tensor, positions: Tensor, base: float) -> Tensor:
    """Features (2 i, 2 i + 1) turned by positions * base ** (-2 i / width).

    Args:
        t: (batch, token, head, width), width even. positions: (batch or 1, token, head or 1).
    """
    precision = torch.promote_types(t.dtype, torch.float32)
    width = t.shape[-1]
    rate = base ** (-torch.arange(0, width, 2, dtype=precision, device=t.device) / width)
    angle = positions.to(precision)[..., None] * rate
    cosine, sine = angle.cos(), angle.sin()
    first, second = t[..., 0::2].to(precision), t[..., 1::2].to(precision)
    return torch.stack((first * cosine - second * sine, first * sine + second * cosine), -1).flatten(3).to(t.dtype)
