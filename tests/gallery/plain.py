"""A right layer, written from Algorithm 1 in the plainest way: what every fault of the gallery departs from.

Axes of the einsum strings: b sequence, n token that asks, m token that is asked, h head, j pseudo-head that asks, i
pseudo-head that is asked, o output head, e feature; in ``mixed`` m is the source head.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Plain(nn.Module):
    """Interleaved Head Attention on (batch, token, model), P pseudo-heads, every step a method of its own.

    Args:
        mask: "none", "token" or "flat". window: a token sees the last ``window`` tokens, its own included.
        rope: None, "token" (position n for all pseudo-tokens of token n) or "virtual" (n P + j).
        attention: "softmax" or "linear".
    """

    def __init__(self, embed_dim: int, num_heads: int, num_pseudo_heads: int, *, mask: str = "none",
                 window: int | None = None, rope: str | None = None, attention: str = "softmax") -> None:
        super().__init__()
        self.embed_dim, self.num_heads, self.num_pseudo_heads = embed_dim, num_heads, num_pseudo_heads
        self.mask, self.window, self.rope, self.attention = mask, window, rope, attention
        self.q_proj, self.k_proj = nn.Linear(embed_dim, embed_dim), nn.Linear(embed_dim, embed_dim)
        self.v_proj, self.out_proj = nn.Linear(embed_dim, embed_dim), nn.Linear(embed_dim, embed_dim)
        mixing = (num_heads, num_heads, num_pseudo_heads)
        self.alpha_q, self.alpha_k = nn.Parameter(torch.zeros(mixing)), nn.Parameter(torch.zeros(mixing))
        self.alpha_v = nn.Parameter(torch.zeros(mixing))
        self.collapse = nn.Parameter(torch.zeros(num_heads, num_heads * num_pseudo_heads))
        #: Keys and values of the tokens that a decoder has seen, and how many; None: no decoding.
        self.past: tuple[Tensor, Tensor] | None = None
        self.decoding, self.first = False, 0
        with torch.no_grad():
            self.start()

    # How it starts.

    def start(self) -> None:
        """Multi-head attention under every mask, and free to leave it: R picks the last pseudo-head, whose pseudo-values
        are copies but for terms, all different, that sum to zero. They are 32nds, so that the sum is exact."""
        self.copy()
        self.pick(-1)
        count = self.num_pseudo_heads
        steps = torch.randint(1, 5, (2, self.num_heads, self.num_heads, 1)) / 32
        self.alpha_v += (2 * torch.arange(count) - (count - 1)) * steps[0]
        self.alpha_q[:, :, :-1] += torch.arange(1, count) * steps[1]

    def copy(self) -> None:
        """Every pseudo-head of head h is a copy of base head h."""
        for alpha in (self.alpha_q, self.alpha_k, self.alpha_v):
            alpha.copy_(torch.eye(self.num_heads)[:, :, None].expand_as(alpha))

    def pick(self, pseudo: int | None) -> None:
        """Output head h is this pseudo-head of head h; None: the mean of them."""
        r = self.collapse.view(self.num_heads, self.num_heads, -1)
        r.zero_()
        count = r.shape[2]
        # Linear attention adds up the P copies of a key; softmax does not see them.
        share = 1 / count if self.attention == "linear" else 1.0
        for head in range(self.num_heads):
            if pseudo is None:
                r[head, head] = share / count
            else:
                r[head, head, pseudo] = share

    # What it computes.

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        q = self.turned(self.mixed(self.base(self.q_proj, x), self.alpha_q))
        k = self.turned(self.mixed(self.base(self.k_proj, x), self.alpha_k))
        v = self.mixed(self.base(self.v_proj, x), self.alpha_v)
        if self.decoding:
            k, v = self.remembered(k, v)
        weights = self.weights(self.scores(q, k), self.sight(q, k, key_padding_mask))
        return self.out_proj(self.collapsed(torch.einsum("bhnjmi,bhmie->bhnje", weights, v)))

    def base(self, projection: nn.Module, x: Tensor) -> Tensor:
        """(b, n, model) to (b, h, n, e): base head h."""
        return projection(x).unflatten(2, (self.num_heads, -1)).transpose(1, 2)

    def mixed(self, base: Tensor, alpha: Tensor) -> Tensor:
        """(b, m, n, e) to (b, h, n, j, e): pseudo-head j of head h is the sum over m of alpha[m, h, j] base head m."""
        return torch.einsum("bmne,mhj->bhnje", base, alpha)

    def position(self, n: Tensor, j: Tensor, pseudo: int) -> Tensor:
        """(n, j): the rotary position of pseudo-token j of token n."""
        return n + 0 * j if self.rope == "token" else n * pseudo + j

    def turned(self, t: Tensor) -> Tensor:
        """(b, h, n, j, e): features (2 i, 2 i + 1) turned by position * 10000 ** (-2 i / width)."""
        if self.rope is None:
            return t
        tokens, pseudo, width = t.shape[2:]
        n = self.first + torch.arange(tokens, device=t.device, dtype=torch.float64)[:, None]
        position = self.position(n, torch.arange(pseudo, device=t.device, dtype=torch.float64), pseudo)
        rate = 10000.0 ** (-torch.arange(0, width, 2, device=t.device, dtype=torch.float64) / width)
        angle = position[..., None] * rate
        return self.rotated(t, angle.cos().to(t.dtype), angle.sin().to(t.dtype))

    def rotated(self, t: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """The features in pairs: (0, 1), (2, 3), ..."""
        a, b = t[..., 0::2], t[..., 1::2]
        return torch.stack((a * cosine - b * sine, a * sine + b * cosine), -1).flatten(-2)

    def remembered(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of all tokens so far, these included."""
        self.first += k.shape[2]
        if self.past is not None:
            k, v = torch.cat((self.past[0], k), 2), torch.cat((self.past[1], v), 2)
        self.past = (k, v)
        return k, v

    def seen(self, n: Tensor, j: Tensor, m: Tensor, i: Tensor, pseudo: int) -> Tensor:
        """Whether pseudo-query (n, j) sees pseudo-key (m, i); all four broadcast."""
        if self.mask == "token":
            result = (m <= n) & (i == i) & (j == j)
        elif self.mask == "flat":
            result = m * pseudo + i <= n * pseudo + j
        else:
            result = (m == m) & (n == n) & (i == i) & (j == j)
        return result if self.window is None else result & (n - m < self.window)

    def sight(self, q: Tensor, k: Tensor, padding: Tensor | None) -> Tensor:
        """(b or 1, 1, n, j, m, i): what is seen. The tokens that ask are the last of those that are asked."""
        queries, keys, pseudo = q.shape[2], k.shape[2], k.shape[3]
        n = torch.arange(keys - queries, keys, device=q.device).view(-1, 1, 1, 1)
        j = torch.arange(q.shape[3], device=q.device).view(-1, 1, 1)
        m, i = torch.arange(keys, device=q.device).view(-1, 1), torch.arange(pseudo, device=q.device)
        seen = self.seen(n, j, m, i, pseudo)[None, None]
        return seen if padding is None else seen & self.kept(padding)[:, None, None, None, :, None]

    def kept(self, padding: Tensor) -> Tensor:
        """(b, m): the keys that are real; ``padding`` is True at pads."""
        return ~padding

    def scale(self, width: int) -> float:
        return width**-0.5 if self.attention == "softmax" else 1.0

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return torch.einsum("bhnje,bhmie->bhnjmi", q, k) * self.scale(q.shape[-1])

    def weights(self, scores: Tensor, seen: Tensor) -> Tensor:
        """(b, h, n, j, m, i): over all pseudo-keys (m, i) that are seen; zeros where none is."""
        if self.attention == "linear":
            return scores.masked_fill(~seen, 0)
        dead = ~seen.flatten(4).any(-1)[..., None]
        flat = scores.masked_fill(~seen, -torch.inf).flatten(4).masked_fill(dead, 0)
        return self.softmax(flat).masked_fill(dead, 0).view_as(scores)

    def softmax(self, scores: Tensor) -> Tensor:
        """Over the last axis, on which the pseudo-keys (m, i) lie; a masked one has minus infinity."""
        return torch.softmax(scores, -1)

    def collapsed(self, attended: Tensor) -> Tensor:
        """(b, h, n, j, e) to (b, n, o * e): output head o is the sum over (h, j) of R[o, h P + j] times (h, j)."""
        r = self.collapse.view(self.num_heads, self.num_heads, -1)
        return torch.einsum("bhnje,ohj->bnoe", attended, r).flatten(2)


@torch.no_grad()
def decoded(layer: Plain, x: Tensor) -> Tensor:
    """``x`` token by token through the layer's cache."""
    layer.past, layer.first, layer.decoding = None, 0, True
    outputs = [layer(x[:, n : n + 1]) for n in range(x.shape[1])]
    layer.past, layer.first, layer.decoding = None, 0, False
    return torch.cat(outputs, 1)
