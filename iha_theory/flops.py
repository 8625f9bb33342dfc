"""FLOPs and score pairs of an attention layer, exactly, with integers or symbols; key-value cache.

A score pair is a (virtual query, virtual key) that the mask lets meet. N tokens with P pseudo-heads make N P
virtual tokens; virtual position nP + j is pseudo-head j of token n. The masks, and the unit of their window:

==============  =======================================================  ====================
mask            token n, pseudo j sees token n', pseudo j' when          window
==============  =======================================================  ====================
``token``       n' <= n, and n - n' < window                             tokens
``flat``        n'P + j' <= nP + j, and their distance is < window       virtual tokens
``flat-token``  n'P + j' <= nP + j, and n - n' < window                  tokens
``none``        always                                                   none
==============  =======================================================  ====================

One multiply-add is two FLOPs. Exponentials, row sums and divisions of softmax are not counted: they are a few
for each pair, against 2 (d_k + d_v) for the two matrix products. Every count is for one sequence and one
layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iha_theory.layer import AXES, MIXING

MASKS = ("token", "flat", "flat-token", "none")
KINDS = ("mha", "gqa", "iha")

#: The feature axis along which a mixing weight acts: one multiply-add for each entry and each feature.
MIXED_FEATURE = {"alpha_q": "key", "alpha_k": "key", "alpha_v": "value", "collapse": "value"}


def half(value: Any) -> Any:
    """Half of an even integer, a fraction, or a polynomial over the rationals.

    Raises:
        ValueError: an odd integer, or a polynomial over the integers: the half would be rounded.
    """
    if isinstance(value, int):
        if value % 2:
            raise ValueError(f"half of {value} is no integer")
        return value // 2
    ring = getattr(value, "ring", None)
    if ring is not None and not ring.domain.is_Field:
        raise ValueError(f"half of a polynomial over {ring.domain} would be rounded; take the rationals")
    return value / 2


def band(positions: Any, window: Any) -> Any:
    """Pairs (i, i') of positions in a row with 0 <= i - i' < window, for 1 <= window <= positions.

    Position i sees min(i + 1, window) others: positions * window - window (window - 1) / 2 in all.
    """
    return positions * window - half(window * (window - 1))


def largest_window(tokens: Any, pseudo_heads: Any, mask: str) -> Any:
    """The window that cuts nothing, in the unit of the mask."""
    return tokens * pseudo_heads if mask == "flat" else tokens


def score_pairs(tokens: Any, pseudo_heads: Any, mask: str = "token", window: Any = None) -> Any:
    """Score pairs of one head, integers or symbols.

    Args:
        tokens: N. pseudo_heads: P, 1 for multi-head attention.
        window: in the unit of the mask, from 1 to :func:`largest_window`; None cuts nothing.

    Raises:
        ValueError: an unknown mask, a window with the mask ``none``, or integers outside their range.
    """
    if mask not in MASKS:
        raise ValueError(f"mask {mask!r}: wanted one of {', '.join(MASKS)}")
    _at_least_one(tokens=tokens, pseudo_heads=pseudo_heads)
    if mask == "none":
        if window is not None:
            raise ValueError("the mask none takes no window; give a causal mask")
        return (tokens * pseudo_heads) ** 2
    most = largest_window(tokens, pseudo_heads, mask)
    if window is None:
        window = most
    elif isinstance(window, int) and isinstance(most, int) and not 1 <= window <= most:
        unit = "virtual tokens" if mask == "flat" else "tokens"
        raise ValueError(f"window: got {window} {unit}, wanted 1 to {most}")
    if mask == "flat":
        return band(tokens * pseudo_heads, window)
    token_pairs = band(tokens, window)
    if mask == "token":
        return pseudo_heads**2 * token_pairs
    return pseudo_heads**2 * (token_pairs - tokens) + tokens * half(pseudo_heads * (pseudo_heads + 1))


@dataclass(frozen=True)
class Layer:
    """One attention layer with its output projection; the sizes are integers or symbols.

    Attributes: kind: ``mha``, ``gqa`` (``groups`` key-value heads) or ``iha`` (``pseudo`` pseudo-heads for
        each head).
        heads: H. key, value: features of a head, d_k and d_v. model: D. pseudo: P. groups: key-value heads,
        None for H.
        mask: one of :data:`MASKS`. window: in the unit of the mask; None is a global layer.

    Raises:
        ValueError: an unknown kind, sizes that do not fit the kind, or heads that the groups do not divide.
    """

    kind: str
    heads: Any
    key: Any
    value: Any
    model: Any
    pseudo: Any = 1
    groups: Any = None
    mask: str = "token"
    window: Any = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind {self.kind!r}: wanted one of {', '.join(KINDS)}")
        if self.kind != "iha" and not (isinstance(self.pseudo, int) and self.pseudo == 1):
            raise ValueError(f"{self.kind} has no pseudo-heads; got P={self.pseudo}, wanted 1")
        if (self.groups is not None) != (self.kind == "gqa"):
            raise ValueError(f"{self.kind}: got groups={self.groups}; key-value groups belong to gqa, and "
                             "gqa needs them")
        _at_least_one(heads=self.heads, key=self.key, value=self.value, model=self.model, pseudo=self.pseudo,
                      groups=1 if self.groups is None else self.groups)
        if isinstance(self.groups, int) and isinstance(self.heads, int) and self.heads % self.groups:
            raise ValueError(f"groups: {self.groups} key-value heads do not divide H={self.heads} heads")

    @property
    def sizes(self) -> dict[str, Any]:
        """The size of every axis of :data:`iha_theory.layer.AXES`; ``source`` is H (that of the queries)."""
        return {"source": self.heads, "head": self.heads, "out": self.heads, "pseudo": self.pseudo,
                "model": self.model, "key": self.key, "value": self.value}

    def pairs(self, tokens: Any) -> Any:
        """Score pairs of all heads."""
        return self.heads * score_pairs(tokens, self.pseudo, self.mask, self.window)


@dataclass(frozen=True)
class Flops:
    """FLOPs of a layer: projections (Q, K, V, O), mixing (with collapse), scores (both products)."""

    projections: Any
    mixing: Any
    scores: Any

    @property
    def total(self) -> Any:
        return self.projections + self.mixing + self.scores


def projection_weights(layer: Layer) -> Any:
    """The entries of W_Q, W_K and W_V, from the axes (a source for each key-value head), and of W_O."""
    total: Any = layer.heads * layer.value * layer.model
    groups = layer.heads if layer.groups is None else layer.groups
    for name in AXES:
        if name not in MIXING:
            total = total + _size(name, layer.sizes | ({} if name == "w_q" else {"source": groups}))
    return total


def flops(layer: Layer, tokens: Any) -> Flops:
    """The FLOPs of a layer on a sequence: each weight acts once on each token, each score pair twice."""
    mixing: Any = layer.heads - layer.heads
    if layer.kind == "iha":
        for name in MIXING:
            mixing = mixing + _size(name, layer.sizes) * layer.sizes[MIXED_FEATURE[name]]
    return Flops(2 * tokens * projection_weights(layer), 2 * tokens * mixing,
                 2 * layer.pairs(tokens) * (layer.key + layer.value))


def cache_entries(layer: Layer, *, mixed: bool = False) -> Any:
    """Numbers that a decoder keeps of each token: its keys and values.

    Args: mixed: for IHA, keep the P pseudo-keys and pseudo-values of each head; False keeps those of the base
        heads and mixes them again at every step.

    Raises:
        ValueError: ``mixed`` without pseudo-heads.
    """
    if mixed and layer.kind != "iha":
        raise ValueError(f"{layer.kind} has no mixed keys; only iha does")
    heads = layer.heads if layer.groups is None else layer.groups
    return heads * (layer.pseudo if mixed else 1) * (layer.key + layer.value)


def cached_tokens(layer: Layer, tokens: int) -> int:
    """How many tokens, its own included, the last of ``tokens`` tokens reads: all of them without a window.

    A flat window of L virtual tokens reaches 1 + ceil((L - 1) / P) tokens from the first pseudo-head of a
    token.
    """
    if layer.window is None:
        return tokens
    reach = 1 - (1 - layer.window) // layer.pseudo if layer.mask == "flat" else layer.window
    return min(tokens, reach)


def _size(name: str, sizes: dict[str, Any]) -> Any:
    product: Any = 1
    for axis in AXES[name].split():
        product = product * sizes[axis]
    return product


def _at_least_one(**sizes: Any) -> None:
    for name, value in sizes.items():
        if isinstance(value, int) and value < 1:
            raise ValueError(f"{name.replace('_', '-')}: got {value}, wanted at least 1")
