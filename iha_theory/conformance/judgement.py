"""What a probe returns: whether the layer is as it should be, what was seen, and where."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from iha_theory.claims import Witness


@dataclass(frozen=True)
class Judgement:
    """What a probe found.

    Attributes:
        good: None where the property does not apply; ``found`` says why then.
        found: what was seen, in words and numbers. case: what it was tried on.
        witness: where two sides part.
    """

    good: bool | None
    found: str = ""
    case: str = ""
    witness: Witness | None = None


def not_applicable(why: str) -> Judgement:
    """A property that cannot be judged, and why."""
    return Judgement(None, why)


def relative(left: Tensor, right: Tensor) -> float:
    """The largest difference, relative to the largest entry of the right side."""
    if left.numel() == 0:
        return 0.0
    return float((left - right).abs().max() / right.abs().max().clamp_min(1e-30))


def widest(left: Tensor, right: Tensor) -> Witness:
    """The entry where two tensors of one shape part most."""
    apart = (left - right).abs()
    apart = torch.where(torch.isfinite(apart), apart, torch.full_like(apart, torch.inf))
    index = tuple(int(i) for i in torch.unravel_index(apart.argmax(), apart.shape))
    return Witness(index, f"{float(left[index]):.6g}", f"{float(right[index]):.6g}")


def same(left: Tensor, right: Tensor, tolerance: float, case: str, what: str, least: float = 0.0) -> Judgement:
    """Whether two tensors agree, relative to the largest entry of the right side, or to ``least`` if that is smaller."""
    if left.shape != right.shape:
        return Judgement(False, f"{what}: no, the shapes are {tuple(left.shape)} and {tuple(right.shape)}", case)
    apart = float((left - right).abs().max()) / max(float(right.abs().max()), least, 1e-30) if left.numel() else 0.0
    if apart <= tolerance:
        return Judgement(True, f"{what} within {apart:.1e}", case)
    return Judgement(False, f"{what} only within {apart:.1e}", case, widest(left, right))
