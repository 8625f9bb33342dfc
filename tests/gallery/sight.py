"""Layers that see what they should not, or not what they should: masks, windows, padding, positions, caches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.gallery.entry import DECODES, Fault, fault
from tests.gallery.plain import Plain


class LooksAhead(Plain):
    def seen(self, n: Tensor, j: Tensor, m: Tensor, i: Tensor, pseudo: int) -> Tensor:
        return super().seen(n + 1, j, m, i, pseudo)


class Stacked(Plain):
    """The virtual tokens lie pseudo-major, (j, n), under a kernel that is causal in their order."""

    def seen(self, n: Tensor, j: Tensor, m: Tensor, i: Tensor, pseudo: int) -> Tensor:
        tokens = m.numel()
        return i * tokens + m <= j * tokens + n


class WindowTooWide(Plain):
    def seen(self, n: Tensor, j: Tensor, m: Tensor, i: Tensor, pseudo: int) -> Tensor:
        return super().seen(n, j, m, i, pseudo) | ((m <= n) & (n - m == self.window))


class OverBatch(Plain):
    """Written for (token, batch, model), and given (batch, token, model)."""

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        return super().forward(x.transpose(0, 1), key_padding_mask).transpose(0, 1)


class HalvesTurned(Plain):
    """The features (i, i + width / 2) turn together."""

    def rotated(self, t: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        a, b = t.chunk(2, -1)
        return torch.cat((a * cosine - b * sine, a * sine + b * cosine), -1)


class Numbered(Plain):
    """Sinusoidal positions are added to its input, and it says nothing of them."""

    def base(self, projection: nn.Module, x: Tensor) -> Tensor:
        n = torch.arange(x.shape[1], device=x.device)[:, None]
        angle = n / 100.0 ** (torch.arange(x.shape[2], device=x.device) / x.shape[2])
        return super().base(projection, x + angle.sin().to(x.dtype))


class PaddingIgnored(Plain):
    def kept(self, padding: Tensor) -> Tensor:
        return torch.ones_like(padding)


class PaddingInverted(Plain):
    def kept(self, padding: Tensor) -> Tensor:
        return padding


class DeadRowsNan(Plain):
    def weights(self, scores: Tensor, seen: Tensor) -> Tensor:
        return self.softmax(scores.masked_fill(~seen, -torch.inf).flatten(4)).view_as(scores)


class DeadRowsMean(Plain):
    def weights(self, scores: Tensor, seen: Tensor) -> Tensor:
        lowest = torch.finfo(scores.dtype).min
        return self.softmax(scores.masked_fill(~seen, lowest).flatten(4)).view_as(scores)


class DeadRowsCleaned(Plain):
    """Not-a-numbers are replaced after the softmax, which hands them back in its gradient."""

    def weights(self, scores: Tensor, seen: Tensor) -> Tensor:
        mask = torch.zeros_like(seen, dtype=scores.dtype).masked_fill(~seen, -torch.inf)
        return torch.nan_to_num(self.softmax((scores + mask).flatten(4))).view_as(scores)


class DeadRowsOnes(Plain):
    """A value for rows that see nothing, but not zero."""

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        y = super().forward(x, key_padding_mask)
        if key_padding_mask is None:
            return y
        ones = self.out_proj(torch.ones_like(y))
        return torch.where(key_padding_mask.all(1)[:, None, None], ones, y)


class Forgets(Plain):
    """The cache is replaced by the newest keys and values instead of growing by them."""

    def remembered(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        whole = super().remembered(k, v)
        self.past = (k, v)
        return whole


class PositionsByCache(Plain):
    """The next position is read off the length of the cache, which counts virtual tokens."""

    def remembered(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        whole = super().remembered(k, v)
        self.first = whole[0].shape[2] * self.num_pseudo_heads
        return whole


class DecodesByToken(Plain):
    """With one new token it drops the causal mask, as one does where P = 1."""

    def start(self) -> None:
        for alpha in (self.alpha_q, self.alpha_k, self.alpha_v, self.collapse):
            nn.init.normal_(alpha, std=self.num_heads**-0.5)

    def seen(self, n: Tensor, j: Tensor, m: Tensor, i: Tensor, pseudo: int) -> Tensor:
        seen = super().seen(n, j, m, i, pseudo)
        return torch.ones_like(seen) if self.decoding else seen


FAULTS: tuple[Fault, ...] = (
    fault("causal mask off by one", "A token sees the next one.", LooksAhead, "causality, algorithm 1, start",
          options={"mask": "token"}),
    fault("stacked under the flat kernel", "Virtual tokens lie pseudo-major under a causal kernel.", Stacked,
          "causality, algorithm 1, start", options={"mask": "flat"},
          note="Pseudo-query j sees all tokens' pseudo-keys below j, the future included."),
    fault("flat where token is declared", "The kernel's causal flag is the flat mask on virtual tokens.", Plain,
          "causality, algorithm 1", options={"mask": "flat"}, adapter={"mask": "token"},
          note="R picks the last pseudo-head, so that it starts as multi-head attention under either mask."),
    fault("window off by one", "A token sees one token more than its window has.", WindowTooWide,
          "causality, algorithm 1, start", options={"mask": "token", "window": 2}),
    fault("attends over the batch", "It takes the first axis for the tokens.", OverBatch,
          "batch, causality, algorithm 1, start",
          adapter={"call": lambda layer, x, padding: layer(x), "padding": False},
          note="An output depends on its own token only, and on the same token of the other sequences."),
    fault("rotary halves", "Features (i, i + d/2) turn together where pairs (2i, 2i + 1) are declared.", HalvesTurned,
          "algorithm 1, start", options={"mask": "token", "rope": "token"}),
    fault("positions not declared", "It adds positions of its own, and claims none.", Numbered,
          "permutation, left padding, algorithm 1, start"),
    fault("padding ignored", "key_padding_mask is accepted and not used.", PaddingIgnored,
          "right padding, left padding, dead rows"),
    fault("padding ignored under a causal mask", "key_padding_mask is not used, as if the mask did its work.",
          PaddingIgnored, "left padding, dead rows", options={"mask": "token"},
          note="Pads behind the real tokens are out of their sight; pads before them are not."),
    fault("padding inverted", "key_padding_mask is read as True where a key is kept.", PaddingInverted,
          "right padding, left padding, dead rows"),
    fault("dead rows not a number", "The softmax of a row that sees nothing is 0 / 0.", DeadRowsNan, "dead rows"),
    fault("pads not a number", "The pads before a sequence see nothing under a causal mask, and become 0 / 0.",
          DeadRowsNan, "left padding, dead rows", options={"mask": "token"},
          note="The real tokens are right: it shows in the rows of the pads, and in the layer that comes next."),
    fault("dead rows of a constant", "A row that sees nothing is set to ones before the output projection.", DeadRowsOnes,
          "dead rows"),
    fault("dead rows averaged", "Masked scores are the lowest number there is, so that a row that sees nothing is the "
          "mean of all.", DeadRowsMean, "dead rows"),
    fault("dead rows cleaned afterwards", "The output of a row that sees nothing is zero, its gradient not a number.",
          DeadRowsCleaned, "dead rows"),
    fault("cache that forgets", "While decoding a token sees itself and the one before.", Forgets, "decoding",
          options={"mask": "token"}, adapter=DECODES),
    fault("cache positions in virtual tokens", "While decoding the positions advance by P.", PositionsByCache,
          "decoding", options={"mask": "token", "rope": "token"}, adapter=DECODES),
    fault("decoding without the flat mask", "While decoding all pseudo-keys of the own token are seen.",
          DecodesByToken, "decoding", options={"mask": "flat"}, adapter=DECODES | {"starts_as_mha": False},
          note="It starts at random: where R picks the last pseudo-head the mask does not show."),
)
