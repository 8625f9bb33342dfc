"""Layers that misbehave as modules: they fail, or depend on what they should not; wrong gradients, dtypes, counts."""

from __future__ import annotations

import time
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.gallery.entry import Fault, fault
from tests.gallery.plain import Plain


class Raises(Plain):
    """A view of a tensor that is not contiguous."""

    def base(self, projection: nn.Module, x: Tensor) -> Tensor:
        tokens = projection(x).transpose(1, 2)
        return tokens.view(x.shape[0], x.shape[1], self.num_heads, -1).transpose(1, 2)


class Hangs(Plain):
    """It normalises until rows and columns sum to one, which they never do. It gives up after a minute: no test
    should leave anything behind."""

    def softmax(self, scores: Tensor) -> Tensor:
        started, error = time.monotonic(), 1.0
        while error > 0 and time.monotonic() - started < 60:
            time.sleep(0.01)
        return super().softmax(scores)


class NotANumber(Plain):
    """The mask leaves out the diagonal, so that the first token sees nothing."""

    def seen(self, n: Tensor, j: Tensor, m: Tensor, i: Tensor, pseudo: int) -> Tensor:
        return super().seen(n - 1, j, m, i, pseudo)

    def weights(self, scores: Tensor, seen: Tensor) -> Tensor:
        return self.softmax(scores.masked_fill(~seen, -torch.inf).flatten(4)).view_as(scores)


class NotCollapsed(Plain):
    """It returns the virtual tokens, (batch, N P, model)."""

    def collapsed(self, attended: Tensor) -> Tensor:
        return attended.permute(0, 2, 3, 1, 4).flatten(1, 2).flatten(2)


class DropsAlways(Plain):
    """The function's own default is to drop, in training or not."""

    def softmax(self, scores: Tensor) -> Tensor:
        return F.dropout(super().softmax(scores), 0.2)


class StandardisedScores(Plain):
    """The scores are divided by the standard deviation of all of them, whichever sequence they belong to."""

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        scores = super().scores(q, k)
        return scores / (0.5 + scores.std())


class MaskInFloat32(Plain):
    """An additive mask of a dtype of its own."""

    def weights(self, scores: Tensor, seen: Tensor) -> Tensor:
        mask = torch.zeros(seen.shape, dtype=torch.float32).masked_fill(~seen, -torch.inf)
        dead = ~seen.flatten(4).any(-1)[..., None]
        flat = (scores + mask).flatten(4).masked_fill(dead, 0)
        return self.softmax(flat).masked_fill(dead, 0).view_as(scores)


class Detached(Plain):
    """The mixing is read past autograd."""

    def mixed(self, base: Tensor, alpha: Tensor) -> Tensor:
        return super().mixed(base, alpha.data)


class Unused(Plain):
    """A gate that nothing reads."""

    def __init__(self, embed_dim: int, num_heads: int, num_pseudo_heads: int) -> None:
        super().__init__(embed_dim, num_heads, num_pseudo_heads)
        self.gate = nn.Parameter(torch.zeros(num_heads))


class ForgetsItsMask(Plain):
    """The mask is made in the branch for inference only."""

    def seen(self, n: Tensor, j: Tensor, m: Tensor, i: Tensor, pseudo: int) -> Tensor:
        seen = super().seen(n, j, m, i, pseudo)
        return torch.ones_like(seen) if self.training else seen


class WrongSlope(torch.autograd.Function):
    """Softmax, whose backward pass leaves out the sum over the row."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        weights = torch.softmax(scores, -1)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return ctx.saved_tensors[0] * grads[0]


class BackwardByHand(Plain):
    """A kernel with a backward pass of its own."""

    def softmax(self, scores: Tensor) -> Tensor:
        weights: Any = WrongSlope.apply(scores)
        return weights


class Overwrites(Plain):
    """It takes its input for a buffer that is free when it has been read."""

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        output = super().forward(x.clone(), key_padding_mask)
        with torch.no_grad():
            x.zero_()
        return output


class ShortMask(Plain):
    """Its mask was made for twelve tokens."""

    def seen(self, n: Tensor, j: Tensor, m: Tensor, i: Tensor, pseudo: int) -> Tensor:
        return super().seen(n, j, m, i, pseudo) | (n >= 12)


class Clamped(Plain):
    """Scores are kept from overflowing."""

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return super().scores(q, k).clamp(-30, 30)


FAULTS: tuple[Fault, ...] = (
    fault("no mask while training", "Its mask is made for inference only.", ForgetsItsMask, "training mode",
          options={"mask": "token"}),
    fault("wrong backward pass", "The backward pass of its softmax leaves out a sum.", BackwardByHand, "gradients"),
    fault("input overwritten", "It writes into its input.", Overwrites, "deterministic"),
    fault("mask of twelve tokens", "From the thirteenth token on it sees everything.", ShortMask, "causality",
          options={"mask": "token"}),
    fault("scores clamped", "It clamps its scores.", Clamped, "algorithm 1",
          note="Scores of the first random parameters stay below the bound, as they do in most tests."),
    fault("raises", "It takes a view of a transposed tensor.", Raises, "runs"),
    fault("hangs", "It iterates to a point that it never reaches.", Hangs, "runs", time_limit=1.0),
    fault("returns not a number", "Its mask leaves out the diagonal.", NotANumber, "runs", options={"mask": "token"}),
    fault("returns the virtual tokens", "It does not collapse the pseudo-heads.", NotCollapsed, "runs"),
    fault("dropout in evaluation", "Dropout is called as a function, without saying that it evaluates.", DropsAlways,
          "deterministic, batch, permutation, right padding, left padding, dtypes, algorithm 1, start",
          note="Whatever is computed twice and compared differs. What is not compared exactly conforms: that every "
               "token sees every other, that f is not affine, that dead rows are zero."),
    fault("statistics over the batch", "The scores are divided by their standard deviation over all sequences.",
          StandardisedScores, "batch, right padding, left padding, algorithm 1, start",
          note="The pads count in the statistics, though they are masked afterwards."),
    fault("mask in float32", "Its mask is made in float32, which half precision does not multiply with.",
          MaskInFloat32, "dtypes", options={"mask": "token"}),
    fault("alpha detached", "The mixing receives no gradient.", Detached, "gradients",
          note="Its values are noisy copies already, so that no two pseudo-heads are the same."),
    fault("parameter not used", "It has a parameter that nothing reads.", Unused, "gradients, parameters"),
    fault("multi-head attention that mixes", "It is called multi-head attention, and has pseudo-heads.", Plain,
          "repeated tokens", adapter={"claims": "mha", "white_box": False}),
)
