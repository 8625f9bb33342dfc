"""Layers that compute something else than Algorithm 1: the mixing, the grouping, the scores, the collapse."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.gallery.entry import Fault, fault
from tests.gallery.plain import Plain


class NoTranspose(Plain):
    def start(self) -> None:
        for alpha in (self.alpha_q, self.alpha_k, self.alpha_v, self.collapse):
            nn.init.normal_(alpha, std=self.num_heads**-0.5)

    def base(self, projection: nn.Module, x: Tensor) -> Tensor:
        return projection(x).reshape(x.shape[0], self.num_heads, x.shape[1], -1)

    def collapsed(self, attended: Tensor) -> Tensor:
        r = self.collapse.view(self.num_heads, self.num_heads, -1)
        heads = torch.einsum("bhnje,ohj->bone", attended, r)
        return heads.reshape(heads.shape[0], heads.shape[2], -1)


class Independent(Plain):
    def start(self) -> None:
        self.copy()
        self.pick(None)

    def seen(self, n: Tensor, j: Tensor, m: Tensor, i: Tensor, pseudo: int) -> Tensor:
        return super().seen(n, j, m, i, pseudo) & (i == j)


class Fused(Plain):
    """One H x H matrix per projection, and one attention per head."""

    def __init__(self, embed_dim: int, num_heads: int, num_pseudo_heads: int) -> None:
        super().__init__(embed_dim, num_heads, 1)
        self.num_pseudo_heads = num_pseudo_heads


class SummedBefore(Plain):
    """The pseudo axis is there, but is averaged before attention."""

    def start(self) -> None:
        self.copy()
        self.pick(-1)

    def mixed(self, base: Tensor, alpha: Tensor) -> Tensor:
        return super().mixed(base, alpha.mean(2, keepdim=True))

    def collapsed(self, attended: Tensor) -> Tensor:
        return super().collapsed(attended.expand(-1, -1, -1, self.num_pseudo_heads, -1))


class PerHeadCollapse(Plain):
    def collapsed(self, attended: Tensor) -> Tensor:
        own = torch.einsum("hhj->hj", self.collapse.view(self.num_heads, self.num_heads, -1))
        return torch.einsum("bhnje,hj->bnhe", attended, own).flatten(2)


class PseudoMajorCollapse(Plain):
    def collapsed(self, attended: Tensor) -> Tensor:
        r = self.collapse.view(self.num_heads, -1, self.num_heads)
        return torch.einsum("bhnje,ojh->bnoe", attended, r).flatten(2)


class Modulo(Plain):
    """The H P pseudo-heads lie side by side, (head, pseudo), and are read as (pseudo, head)."""

    def mixed(self, base: Tensor, alpha: Tensor) -> Tensor:
        flat = super().mixed(base, alpha).transpose(2, 3).flatten(1, 2)
        return flat.unflatten(1, (-1, self.num_heads)).permute(0, 2, 3, 1, 4)


class Transposed(Plain):
    def mixed(self, base: Tensor, alpha: Tensor) -> Tensor:
        return torch.einsum("bmne,hmj->bhnje", base, alpha)


class NoValueMixing(Plain):
    def mixed(self, base: Tensor, alpha: Tensor) -> Tensor:
        if alpha is self.alpha_v:
            return base[:, :, :, None].expand(-1, -1, -1, self.num_pseudo_heads, -1)
        return super().mixed(base, alpha)


class NoScale(Plain):
    def scale(self, width: int) -> float:
        return 1.0


class TwiceScaled(Plain):
    def scale(self, width: int) -> float:
        return 1 / width


class SoftmaxPerPseudoHead(Plain):
    """The scores have axes (..., m, i) and the softmax runs over one of them."""

    def softmax(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores.unflatten(-1, (-1, self.num_pseudo_heads)), -2).flatten(-2)


class FeatureGain(Plain):
    """A trained gain for every head and feature of the pseudo-queries."""

    def __init__(self, embed_dim: int, num_heads: int, num_pseudo_heads: int) -> None:
        super().__init__(embed_dim, num_heads, num_pseudo_heads)
        self.gain = nn.Parameter(torch.ones(num_heads, embed_dim // num_heads))

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return super().scores(q * self.gain[:, None, None], k)


class Tied(Plain):
    """One H x H matrix per projection, shared by all pseudo-heads, which are then P times the same."""

    def __init__(self, embed_dim: int, num_heads: int, num_pseudo_heads: int, *, attention: str) -> None:
        super().__init__(embed_dim, num_heads, num_pseudo_heads, attention=attention)
        for name in ("alpha_q", "alpha_k", "alpha_v"):
            setattr(self, name, nn.Parameter(torch.eye(num_heads)[:, :, None]))

    def start(self) -> None:
        self.pick(-1)

    def mixed(self, base: Tensor, alpha: Tensor) -> Tensor:
        return super().mixed(base, alpha.expand(-1, -1, self.num_pseudo_heads))

    # What its adapter names: the weights as Algorithm 1 has them.
    whole_q = property(lambda self: self.alpha_q.expand(-1, -1, self.num_pseudo_heads))
    whole_k = property(lambda self: self.alpha_k.expand(-1, -1, self.num_pseudo_heads))
    whole_v = property(lambda self: self.alpha_v.expand(-1, -1, self.num_pseudo_heads))


FAULTS: tuple[Fault, ...] = (
    fault("reshape without transpose", "Heads are made by a reshape alone, so that heads and tokens are mixed.",
          NoTranspose, "permutation, right padding, left padding, algorithm 1", adapter={"starts_as_mha": False},
          note="It starts at random: at copies the blocks of tokens would not even see one another."),
    fault("average of independent attentions", "Pseudo-query j sees pseudo-keys j only; the outputs are averaged.",
          Independent, "repeated tokens, algorithm 1, separation",
          note="Each of the P attentions is linear on repeated tokens; P equal copies with equal shares of the output "
               "receive equal gradients."),
    fault("fused mixing", "One H x H mixing per projection folds into the projections: multi-head attention.",
          Fused, "repeated tokens", adapter={"white_box": False},
          note="It has no pseudo axis that an adapter could name."),
    fault("pseudo-heads averaged before attention", "The P mixed queries, keys and values are averaged, then attended.",
          SummedBefore, "repeated tokens, algorithm 1, separation",
          note="Only the mean over j of alpha counts, so that all j receive equal gradients."),
    fault("collapse per head", "Output head h collects the pseudo-heads of head h only.", PerHeadCollapse,
          "algorithm 1"),
    fault("collapse read pseudo-major", "Column h P + j of R is read as column j H + h.", PseudoMajorCollapse,
          "algorithm 1, start"),
    fault("heads grouped modulo", "Pseudo-head (h, j) at index h P + j is read at index j H + h.", Modulo,
          "algorithm 1, start"),
    fault("transposed alpha", "alpha[h, m, j] weighs source m for head h.", Transposed, "algorithm 1",
          note="At the start alpha is symmetric but for the terms of the values, which sum to zero either way."),
    fault("value mixing absent", "All pseudo-values of a head are its base values; alpha_v is left over.",
          NoValueMixing, "repeated tokens, gradients, algorithm 1",
          note="A convex combination of P equal rows is that row. alpha_v itself keeps the pseudo-heads apart."),
    fault("scale missing", "The scores are not divided by sqrt(d_k).", NoScale, "algorithm 1, start"),
    fault("scale doubled", "The scores are divided by d_k.", TwiceScaled, "algorithm 1, start"),
    fault("softmax per pseudo-head", "Each pseudo-head's keys are normalised by themselves, then summed.",
          SoftmaxPerPseudoHead, "repeated tokens, algorithm 1, start",
          note="On repeated tokens it is the sum of the pseudo-values; at copies it is P times multi-head attention."),
    fault("gain per feature", "The pseudo-queries have a trained gain for every feature.", FeatureGain,
          "algorithm 1, parameters"),
    fault("linear, averaged before attention", "Linear attention whose pseudo-heads are averaged before attention.",
          SummedBefore, "algorithm 1, separation, operators", options={"attention": "linear"},
          adapter={"starts_as_mha": False},
          note="The P operators of a head are one and the same."),
    fault("linear, tied pseudo-heads", "Linear attention whose pseudo-heads share one H x H mixing.", Tied,
          "separation, operators, parameters", options={"attention": "linear"},
          adapter={"alpha_q": "whole_q", "alpha_k": "whole_k", "alpha_v": "whole_v"},
          note="It is Algorithm 1, with weights that are P times the same."),
)
