"""Which virtual keys a virtual query sees, and the checks of the masks that a caller gives.

Virtual tokens are interleaved: the pseudo-tokens (n, 0), ..., (n, P-1) of token n stand side by side. A layer may leave
pseudo-queries out that R ignores; Q is the number of pseudo-queries of a token that are left, P that of pseudo-keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

#: Rows of virtual queries that a chunk has: enough to keep the kernel busy, few enough to keep a chunk's mask small.
CHUNK_ROWS = 256


class Chunk(NamedTuple):
    """Tokens ``first`` to ``last`` (excluded) as queries, ``lo`` to ``hi`` as keys, and what is added to the logits.

    ``bias`` is None (all visible) or broadcasts to (batch, head, (last-first) Q, (hi-lo) P).
    """

    first: int
    last: int
    lo: int
    hi: int
    bias: Tensor | None


@dataclass(frozen=True)
class Sight:
    """Who sees whom among virtual tokens.

    Attributes:
        queries: tokens that ask, N. keys: tokens that are asked, S. Under a causal mask the queries are the last N of
            the S tokens.
        pseudo_keys: P. pseudo_queries: Q.
        limits: for each of the Q pseudo-queries the last pseudo-key of its own token that it sees; None: no causal
            mask. The token mask is (P-1, ..., P-1), the flat one (0, ..., P-1).
        window: a token sees the last ``window`` tokens, its own included; None: all.
        padding: (batch, S), added to the logits of a token's keys; None: no padding.
        extra: (batch or 1, head or 1, N, S), added to the logits of a token pair; None: nothing.
        table: a table of :func:`picture` for one query token and at least S - 1 tokens before it, made once for many
            steps of a decoder; None: made when it is needed.
    """

    queries: int
    keys: int
    pseudo_keys: int
    pseudo_queries: int
    limits: tuple[int, ...] | None = None
    window: int | None = None
    padding: Tensor | None = None
    extra: Tensor | None = None
    table: Tensor | None = None

    @property
    def offset(self) -> int:
        """How many tokens precede the first query."""
        return self.keys - self.queries

    @property
    def is_causal(self) -> bool:
        return self.limits is not None

    @property
    def is_windowed(self) -> bool:
        """Whether the window cuts anything off."""
        return self.window is not None and self.window < self.keys

    @property
    def is_token(self) -> bool:
        """Whether every pseudo-query sees all pseudo-keys of its own token."""
        return self.limits is not None and min(self.limits) == self.pseudo_keys - 1

    @property
    def is_flat(self) -> bool:
        """Whether it is the causal mask of a standard kernel over N P virtual tokens, from the first token on."""
        return self.offset == 0 and self.limits == tuple(range(self.pseudo_keys))

    def virtual_padding(self) -> Tensor | None:
        """(batch, 1, 1, S P): the padding of virtual keys."""
        return None if self.padding is None else self.padding.repeat_interleave(self.pseudo_keys, 1)[:, None, None]

    def with_keys(self, keys: int, padding: Tensor | None, table: Tensor | None) -> Sight:
        """The same queries at the end of ``keys`` tokens, with the padding of all of them."""
        return Sight(self.queries, keys, self.pseudo_keys, self.pseudo_queries, self.limits, self.window, padding,
                     self.extra, table)

    def simplified(self) -> Sight:
        """The same sight, without a causal mask where it masks nothing: one token that sees all keys it is given."""
        if self.queries == 1 and self.is_token and not self.is_windowed:
            return Sight(1, self.keys, self.pseudo_keys, self.pseudo_queries, None, None, self.padding, self.extra,
                         self.table)
        return self if self.window is None or self.is_windowed else replace(self, window=None)

    def chunk_size(self, rows: int = CHUNK_ROWS) -> int:
        """Tokens of a chunk; the last one may have fewer."""
        return max(1, min(rows // self.pseudo_queries, self.queries))

    def chunks(self, dtype: torch.dtype, device: torch.device, rows: int = CHUNK_ROWS) -> Iterator[Chunk]:
        """The queries cut into runs, each with the range of keys that it sees and the bias there.

        One table serves all runs: relative to its first query a run always sees the same picture.
        """
        size = self.chunk_size(rows)
        reach = self.keys if self.window is None else self.window - 1
        past = min(self.offset + (self.queries - 1) // size * size, reach)
        table = self.table
        if table is not None:
            past = table.shape[1] // self.pseudo_keys - 1
        elif self.limits is not None:
            table = picture(size, past, self.pseudo_keys, self.limits, self.window, dtype, device)
        padding = self.virtual_padding()
        for first in range(0, self.queries, size):
            last = min(first + size, self.queries)
            lo, hi, bias = 0, self.keys, None
            if table is not None:
                start = self.offset + first
                lo, hi = max(0, start - reach), self.offset + last
                bias = table[: (last - first) * self.pseudo_queries,
                             (past + lo - start) * self.pseudo_keys : (past + hi - start) * self.pseudo_keys]
            if padding is not None:
                part = padding[..., lo * self.pseudo_keys : hi * self.pseudo_keys]
                bias = part if bias is None else bias + part
            if self.extra is not None:
                part = self.extra[:, :, first:last, lo:hi].repeat_interleave(self.pseudo_queries, 2)
                part = part.repeat_interleave(self.pseudo_keys, 3)
                bias = part if bias is None else bias + part
            yield Chunk(first, last, lo, hi, bias)


def picture(size: int, past: int, pseudo_keys: int, limits: tuple[int, ...], window: int | None, dtype: torch.dtype,
            device: torch.device) -> Tensor:
    """(size Q, (past + size) P): 0 where token n in [0, size) sees n2 in [-past, size), else minus infinity."""
    n = torch.arange(size, device=device).view(-1, 1, 1, 1)
    n2 = torch.arange(-past, size, device=device).view(1, 1, -1, 1)
    j2 = torch.arange(pseudo_keys, device=device).view(1, 1, 1, -1)
    limit = torch.tensor(limits, device=device).view(1, -1, 1, 1)
    seen = (n2 < n) | ((n2 == n) & (j2 <= limit))
    if window is not None:
        seen = seen & (n - n2 < window)
    seen = seen.reshape(size * len(limits), -1)
    return torch.zeros(seen.shape, dtype=dtype, device=device).masked_fill(~seen, -torch.inf)


def additive(name: str, mask: Tensor, dtype: torch.dtype, shapes: dict[str, tuple[int, ...]], *,
             boolean_only: str | None = None) -> Tensor:
    """A caller's mask as numbers that are added to the logits.

    Args:
        name: of the argument. mask: Boolean, True where *not* to look, or floating-point, added as it stands.
        dtype: of the result. shapes: the shapes that are allowed, by what they mean.
        boolean_only: if given, why numbers are refused.

    Raises:
        ValueError: another dtype or another shape.
    """
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise ValueError(f"{name}: got dtype {mask.dtype}, wanted bool (True: not seen) or a floating-point type "
                         "(added)")
    if mask.dtype != torch.bool and boolean_only:
        raise ValueError(f"{name}: got dtype {mask.dtype}, wanted bool: {boolean_only}")
    if tuple(mask.shape) not in shapes.values():
        wanted = " or ".join(f"{meaning} {shape}" for meaning, shape in shapes.items())
        raise ValueError(f"{name}: got shape {tuple(mask.shape)}, wanted {wanted}")
    if mask.dtype == torch.bool:
        return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -torch.inf)
    return mask.to(dtype)
