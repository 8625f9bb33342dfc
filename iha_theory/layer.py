"""The layer: Interleaved Head Attention as one formula, for every kind of scalar (Algorithm 1).

The paper's letters and the words used here:

=====================  =============  ======================================================
paper                  here           axes, in index order
=====================  =============  ======================================================
``W_Q, W_K``           ``w_q, w_k``   source, model, key      (base head m, input D, d_k)
``W_V``                ``w_v``        source, model, value    (base head m, input D, d_v)
``alpha^Q/K/V``        ``alpha_q/k/v``  source, head, pseudo  (base head m, head h, pseudo-head j)
``R`` (H x HP)         ``collapse``   out, head, pseudo       (R's column h P + j is [head h, pseudo j])
=====================  =============  ======================================================

Everything counts from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from einops import einsum, rearrange

#: The only place where the shape of a weight is written: it validates, counts parameters and labels what is printed.
AXES: dict[str, str] = {
    "w_q": "source model key",
    "w_k": "source model key",
    "w_v": "source model value",
    "alpha_q": "source head pseudo",
    "alpha_k": "source head pseudo",
    "alpha_v": "source head pseudo",
    "collapse": "out head pseudo",
}
MIXING = ("alpha_q", "alpha_k", "alpha_v", "collapse")


class Attention(Protocol):
    """An attention operator: (head, pseudo, token, key) x 2 and (head, pseudo, token, value) to the latter's shape."""

    def __call__(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, /) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class IHA:
    """The weights of one IHA layer, each with the axes that :data:`AXES` names.

    The four mixing fields are given together or left out together. Left out, they are the identity with one
    pseudo-head: the layer is plain multi-head attention and they count no parameters (Theorem 2).

    Raises:
        ValueError: a field has the wrong number of axes, or two fields disagree about the size of an axis.
    """

    w_q: np.ndarray
    w_k: np.ndarray
    w_v: np.ndarray
    alpha_q: np.ndarray | None = None
    alpha_k: np.ndarray | None = None
    alpha_v: np.ndarray | None = None
    collapse: np.ndarray | None = None

    def __post_init__(self) -> None:
        absent = [name for name in MIXING if getattr(self, name) is None]
        if absent and len(absent) != len(MIXING):
            raise ValueError(f"IHA: {', '.join(absent)} missing; give all of {', '.join(MIXING)}, or none")
        _ = self.sizes

    @property
    def sizes(self) -> dict[str, int]:
        """The size of every axis: source, model, key, value, and head, pseudo, out."""
        sizes: dict[str, int] = {}
        owner: dict[str, str] = {}
        for name, array in self.fields().items():
            axes = AXES[name].split()
            if array.ndim != len(axes):
                raise ValueError(f"IHA: {name} has {array.ndim} axes of shape {array.shape}, but wants {AXES[name]!r}")
            for axis, size in zip(axes, array.shape, strict=True):
                if sizes.setdefault(axis, size) != size:
                    raise ValueError(
                        f"IHA: {name} has {axis}={size}, but {axis}={sizes[axis]} in {owner[axis]}; "
                        f"the axes of {name} are {AXES[name]!r}"
                    )
                owner.setdefault(axis, name)
        if not self.is_mixed:
            sizes |= {"head": sizes["source"], "out": sizes["source"], "pseudo": 1}
        return sizes

    @property
    def is_mixed(self) -> bool:
        """Whether the layer has mixing and collapse weights; without them it is multi-head attention."""
        return self.alpha_q is not None

    def fields(self) -> dict[str, np.ndarray]:
        """The weights that are present, by name, in the order of :data:`AXES`."""
        return {name: array for name in AXES if (array := getattr(self, name)) is not None}


def multi_head(w_q: np.ndarray, w_k: np.ndarray, w_v: np.ndarray) -> IHA:
    """Multi-head attention: the IHA layer with one pseudo-head and identity mixing.

    Args:
        w_q: (source, model, key). w_k: (source, model, key). w_v: (source, model, value).
    """
    return IHA(w_q, w_k, w_v)


class Pseudo(NamedTuple):
    """The pseudo-queries, -keys (head, pseudo, token, key) and -values (head, pseudo, token, value) of an input."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray


def _mixed(x: np.ndarray, w: np.ndarray, alpha: np.ndarray | None) -> np.ndarray:
    base = einsum(x, w, "token model, source model feature -> source token feature")
    if alpha is None:
        return rearrange(base, "head token feature -> head 1 token feature")
    return einsum(base, alpha, "source token feature, source head pseudo -> head pseudo token feature")


def pseudo_heads(weights: IHA, x: np.ndarray) -> Pseudo:
    """Step 1 of Algorithm 1: project the input with the base weights and mix over the base heads.

    Args:
        weights: the layer. x: (token, model).

    Raises:
        ValueError: the input's width is not the layer's ``model`` size.
    """
    if x.ndim != 2 or x.shape[1] != weights.sizes["model"]:
        raise ValueError(f"forward: the input has shape {x.shape}, but wants (token, model={weights.sizes['model']})")
    return Pseudo(
        _mixed(x, weights.w_q, weights.alpha_q),
        _mixed(x, weights.w_k, weights.alpha_k),
        _mixed(x, weights.w_v, weights.alpha_v),
    )


def collapsed(weights: IHA, attended: np.ndarray) -> np.ndarray:
    """Step 4 of Algorithm 1: collapse (head, pseudo, token, value) with R and concatenate: (token, out value)."""
    if weights.collapse is None:
        heads = rearrange(attended, "head 1 token value -> head token value")
    else:
        heads = einsum(weights.collapse, attended, "out head pseudo, head pseudo token value -> out token value")
    return rearrange(heads, "out token value -> token (out value)")


def forward(weights: IHA, x: np.ndarray, attention: Attention) -> np.ndarray:
    """The output of the layer: Algorithm 1, over whatever scalars the arrays hold.

    Args:
        weights: the layer (see :data:`AXES`).
        x: (token, model), the input; positional codes are columns of it.
        attention: the operator, for example :func:`iha_theory.linear`; it sees (head, pseudo, token, feature).

    Returns:
        (token, out * value): the heads side by side.

    Raises:
        ValueError: a shape does not fit. TypeError: the operator does not serve these scalars.
    """
    return collapsed(weights, attention(*pseudo_heads(weights, x)))
