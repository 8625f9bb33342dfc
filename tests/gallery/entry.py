"""What an entry of the gallery says, and how it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from iha_theory.conformance import Adapter
from tests.gallery.plain import Plain, decoded

#: (embed_dim, heads, pseudo, seed); the differing rows are stated for heads >= 2 and pseudo >= 3.
MakeFault = Callable[[int, int, int, int], tuple[nn.Module, Adapter]]
MakeRight = Callable[[int], tuple[Any, Adapter | None]]


@dataclass(frozen=True)
class Fault:
    """A wrong layer.

    Attributes:
        name: of the fault. says: what is wrong with it. make: the layer, and what it claims of itself.
        differs: exactly the rows that must differ, as derived from what the layer does, not from a run.
        note: why, where it is not plain. time_limit: of a call, in seconds.
    """

    name: str
    says: str
    make: MakeFault
    differs: frozenset[str]
    note: str = ""
    time_limit: float = 10.0


@dataclass(frozen=True)
class Right:
    """A right layer, of a shape drawn from the seed; ``differs``: what is truly to be said of it, ``note``: why."""

    name: str
    make: MakeRight
    differs: frozenset[str] = frozenset()
    note: str = ""


def rows(text: str) -> frozenset[str]:
    """The keys of rows, separated by commas."""
    return frozenset(row.strip() for row in text.split(",") if row.strip())


def seeded(seed: int, make: Callable[[], Any]) -> Any:
    """What ``make`` returns when the random numbers start from ``seed``; nobody else's are touched."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        return make()


def claims(layer: Plain, **others: Any) -> Adapter:
    """What a layer of the family of :class:`Plain` says of itself, from its own attributes."""
    own: dict[str, Any] = {"mask": layer.mask, "window": layer.window, "rope": layer.rope, "attention": layer.attention,
                           "features": layer.embed_dim}
    return Adapter(**own | others)


def fault(name: str, says: str, layer: type[Plain], differs: str, *, note: str = "",
          options: Mapping[str, Any] | None = None, adapter: Mapping[str, Any] | None = None,
          time_limit: float = 10.0) -> Fault:
    """A fault of the family of :class:`Plain`.

    Args:
        layer: made with ``options`` as further arguments. differs: the rows, separated by commas.
        adapter: what the layer claims beyond or against its attributes.
    """
    def make(embed_dim: int, heads: int, pseudo: int, seed: int) -> tuple[nn.Module, Adapter]:
        made = seeded(seed, lambda: layer(embed_dim, heads, pseudo, **(options or {})))
        return made, claims(made, **(adapter or {}))

    return Fault(name, says, make, rows(differs), note, time_limit)


DECODES = {"decode": decoded}
