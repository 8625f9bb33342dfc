"""The key-value cache of generation: mixed pseudo-keys and pseudo-values, preallocated.

Mixed, not base: a step then mixes one token and reads the rest in place. Base keys and values would take 1/P of the
memory, but every step would mix all of them again: 2 H_kv^2 P d products for each cached token, where attention itself
takes 2 H P^2 d. benchmarks/RESULTS.md has both steps measured, and the bytes of a token.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from iha_theory.torch_masks import picture
from iha_theory.torch_mixing import Matrices


class KVCache:
    """Pseudo-keys and -values of the tokens seen so far, for one layer. Made by ``layer.new_cache``.

    A layer with a window of W tokens keeps at most 2 W of them, however long the sequence becomes.

    Attributes:
        k: (batch, kv head, capacity * P, key), v: (batch, kv head, capacity * P, value); filled up to ``kept`` tokens.
        tokens: tokens seen since the start. kept: tokens that are still there. capacity: tokens that fit.
        matrices: the mixing that made the keys, from the first step on; ``reset`` after changing the layer's weights.
    """

    def __init__(self, batch: int, kv_heads: int, pseudo: int, key: int, value: int, max_tokens: int,
                 window: int | None = None, *, device: Any = None, dtype: Any = None) -> None:
        self.capacity = max_tokens if window is None else min(max_tokens, 2 * window)
        self.pseudo, self.window, self.max_tokens = pseudo, window, max_tokens
        self.k = torch.zeros(batch, kv_heads, self.capacity * pseudo, key, device=device, dtype=dtype)
        self.v = torch.zeros(batch, kv_heads, self.capacity * pseudo, value, device=device, dtype=dtype)
        self.padding: Tensor | None = None
        self.tokens = self.kept = 0
        self.matrices: Matrices | None = None
        self._tables: dict[tuple[int, ...], Tensor] = {}
        self._stacked: tuple[Matrices, Tensor] | None = None

    @property
    def numbers_per_token(self) -> int:
        """How many numbers the cache keeps for each token and sequence: P H_kv (d_k + d_v)."""
        return self.pseudo * self.k.shape[1] * (self.k.shape[3] + self.v.shape[3])

    def table(self, limits: tuple[int, ...] | None) -> Tensor | None:
        """The mask of one new token over all that fit, made once; None if the token sees all of its pseudo-keys."""
        if limits is None or min(limits) == self.pseudo - 1:
            return None
        if limits not in self._tables:
            # The keys that are handed out lie within the window already.
            self._tables[limits] = picture(1, self.capacity, self.pseudo, limits, None, self.k.dtype, self.k.device)
        return self._tables[limits]

    def stacked(self, matrices: Matrices) -> Tensor:
        """(3, P H, H): the mixing of queries, keys and values, for one product of all three; put together once."""
        if self._stacked is None or self._stacked[0] is not matrices:
            self._stacked = matrices, torch.stack((matrices.q, matrices.k, matrices.v))
        return self._stacked[1]

    def reset(self) -> None:
        """Forget all tokens; the memory stays allocated."""
        self.tokens = self.kept = 0
        self.padding = self.matrices = None

    def reorder(self, index: Tensor) -> None:
        """Take sequence index[b] in place of sequence b (beam search): index (batch,)."""
        self.k.copy_(self.k.index_select(0, index))
        self.v.copy_(self.v.index_select(0, index))
        if self.padding is not None:
            self.padding = self.padding.index_select(0, index)

    def check(self, batch: int, new: int, kv_heads: int, pseudo: int, dtype: torch.dtype, device: torch.device) -> None:
        """Whether ``new`` tokens of a layer's keys may be added.

        Raises:
            ValueError: made for another batch, layer, dtype or device, or full.
        """
        got = (self.k.shape[0], self.k.shape[1], self.pseudo)
        if got != (batch, kv_heads, pseudo):
            raise ValueError(f"cache: got one for (batch, kv heads, P) = {got}, wanted {(batch, kv_heads, pseudo)}")
        if (self.k.dtype, self.k.device) != (dtype, device):
            raise ValueError(f"cache: got {self.k.dtype} on {self.k.device}, wanted {dtype} on {device}")
        if self.tokens + new > self.max_tokens:
            raise ValueError(f"cache: {self.tokens} tokens and {new} more do not fit; it was made for max_tokens="
                             f"{self.max_tokens}")

    def extend(self, k: Tensor, v: Tensor, padding: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Add the keys and values of new tokens; returns those that the new tokens may see, theirs last.

        Args:
            k: (batch, kv head, new * P, key). v: (batch, kv head, new * P, value).
            padding: (batch, new), added to the logits of these keys, or None.

        Returns:
            k, v and padding in the same layout, of all tokens that are within reach.
        """
        new = k.shape[2] // self.pseudo
        reach = self.kept if self.window is None else min(self.kept, self.window - 1)
        if padding is not None and self.padding is None:
            self.padding = padding.new_zeros(padding.shape[0], self.capacity)
        if padding is None and self.padding is not None:
            padding = self.padding.new_zeros(k.shape[0], new)
        if self.kept + new > self.capacity and reach + new <= self.capacity:
            self._keep(reach)
        self.tokens += new
        if self.kept + new <= self.capacity:
            self._write(self.kept, k, v, padding)
            self.kept += new
            return self._view(self.kept - new - reach, self.kept)
        # Longer than the buffer of a window: what is seen is put together, and its end is kept.
        old = self._view(self.kept - reach, self.kept)
        k, v = torch.cat((old[0], k), 2), torch.cat((old[1], v), 2)
        padding = None if padding is None or old[2] is None else torch.cat((old[2], padding), 1)
        last = min(self.capacity, k.shape[2] // self.pseudo)
        self._write(0, k[:, :, -last * self.pseudo :], v[:, :, -last * self.pseudo :],
                    None if padding is None else padding[:, -last:])
        self.kept = last
        return k, v, padding

    def _view(self, first: int, last: int) -> tuple[Tensor, Tensor, Tensor | None]:
        rows = slice(first * self.pseudo, last * self.pseudo)
        return self.k[:, :, rows], self.v[:, :, rows], None if self.padding is None else self.padding[:, first:last]

    def _write(self, first: int, k: Tensor, v: Tensor, padding: Tensor | None) -> None:
        rows = slice(first * self.pseudo, first * self.pseudo + k.shape[2])
        self.k[:, :, rows] = k
        self.v[:, :, rows] = v
        if self.padding is not None and padding is not None:
            self.padding[:, first : first + padding.shape[1]] = padding

    def _keep(self, tokens: int) -> None:
        """Move the last tokens to the front."""
        k, v, padding = (None if t is None else t.clone() for t in self._view(self.kept - tokens, self.kept))
        self.kept = tokens
        if k is not None and v is not None:
            self._write(0, k, v, padding)
