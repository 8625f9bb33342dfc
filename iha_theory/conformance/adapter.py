"""What a layer says of itself, how it is called, and where its weights live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from einops import rearrange
from torch import Tensor, nn

Place = str | Callable[[Any], Tensor] | None


class Weights(NamedTuple):
    """The weights of a layer in the index order of the formula; a bias is None where there is none.

    Attributes:
        q: (head, model, key). k: (kv head, model, key). v: (kv head, model, value). Base projections.
        q_bias, k_bias, v_bias: (head or kv head, key or value).
        alpha_q: (source, head, pseudo). alpha_k, alpha_v: (source kv head, kv head, pseudo).
        collapse: (out, head, pseudo).
        out: (model, out value), or None without an output projection. out_bias: (model,).
    """

    q: Tensor
    k: Tensor
    v: Tensor
    q_bias: Tensor | None
    k_bias: Tensor | None
    v_bias: Tensor | None
    alpha_q: Tensor
    alpha_k: Tensor
    alpha_v: Tensor
    collapse: Tensor
    out: Tensor | None
    out_bias: Tensor | None

    @property
    def heads(self) -> int:
        return self.q.shape[0]

    @property
    def pseudo(self) -> int:
        return self.alpha_q.shape[2]

    @property
    def projections(self) -> int:
        """Q, the number of parameters of the projections, the output's included."""
        given = (self.q, self.k, self.v, self.q_bias, self.k_bias, self.v_bias, self.out, self.out_bias)
        return sum(t.numel() for t in given if t is not None)

    @property
    def mixing(self) -> int:
        """The number of mixing parameters; 4 H^2 P where every head has its own keys."""
        return sum(t.numel() for t in (self.alpha_q, self.alpha_k, self.alpha_v, self.collapse))

    def to(self, dtype: torch.dtype) -> Weights:
        """Detached, in another dtype."""
        cast: list[Any] = [None if t is None else t.detach().to(dtype) for t in self]
        return Weights(*cast)


@dataclass(frozen=True)
class Adapter:
    """Facts about a layer that the kit cannot guess; every field has a default.

    Attributes:
        claims: "iha" or "mha", what the layer is meant to be.
        attention: "softmax", "linear" or "hard" (ties averaged).
        mask: "none", "token" or "flat"; None: whichever of them is found is right.
        window: W; a token sees the last W tokens, itself included.
        positions: whether the layer adds positions of its own, other than rotary ones.
        rope: rotary positions, "token" (one for all pseudo-tokens of a token) or "virtual" (n P + j), of base
            ``rope_base``; features (2 i, 2 i + 1) turn together.
        starts_as_mha: whether the layer as given is meant to compute multi-head attention with its projections.
        scale: of the scores; None is 1 / sqrt(d_k) under softmax, 1 otherwise.
        features: D; None reads it from the layer.
        call: ``f(layer, x, padding)``, x (batch, token, D), padding None or (batch, token) Boolean, True at pads;
            returns (batch, token, D). None: ``layer(x)``, with ``key_padding_mask`` where forward has it.
        padding: whether ``call`` heeds its padding.
        decode: ``f(layer, x)``: the same output, made token by token with the layer's cache.
        white_box: whether the weights are named below; False leaves the black box.
        q, k, v, out: where the projections are: a dotted attribute that is an ``nn.Linear`` or a tensor of the axes
            ``projection``, or a function of the layer that returns the tensor. out None: no output projection.
        alpha_q, alpha_k, alpha_v, collapse: where the mixing is, in the axes ``alpha`` and ``r``; all None: none, the
            layer is multi-head attention.
        heads, pseudo, kv_heads: H, P and the heads of keys and values, numbers or attributes; kv_heads None: those of
            alpha_k, or H.
        projection, alpha, r: axes as patterns over head, feature, model; source, head, pseudo; out, head, pseudo.
        weights: ``f(layer)`` that returns :class:`Weights`, in place of all names.
    """

    claims: Literal["iha", "mha"] = "iha"
    attention: Literal["softmax", "linear", "hard"] = "softmax"
    mask: Literal["none", "token", "flat"] | None = None
    window: int | None = None
    positions: bool = False
    rope: Literal["token", "virtual"] | None = None
    rope_base: float = 10000.0
    starts_as_mha: bool = True
    scale: float | None = None
    features: int | None = None
    call: Callable[[Any, Tensor, Tensor | None], Tensor] | None = None
    padding: bool = True
    decode: Callable[[Any, Tensor], Tensor] | None = None
    white_box: bool = True
    q: Place = "q_proj"
    k: Place = "k_proj"
    v: Place = "v_proj"
    out: Place = "out_proj"
    alpha_q: Place = "alpha_q"
    alpha_k: Place = "alpha_k"
    alpha_v: Place = "alpha_v"
    collapse: Place = "collapse"
    heads: str | int = "num_heads"
    pseudo: str | int = "num_pseudo_heads"
    kv_heads: str | int | None = None
    projection: str = "(head feature) model"
    alpha: str = "source head pseudo"
    r: str = "out (head pseudo)"
    weights: Callable[[Any], Weights] | None = None

    def __post_init__(self) -> None:
        allowed = {"claims": ("iha", "mha"), "attention": ("softmax", "linear", "hard"),
                   "mask": (None, "none", "token", "flat"), "rope": (None, "token", "virtual")}
        for name, known in allowed.items():
            if getattr(self, name) not in known:
                raise ValueError(f"adapter: {name}={getattr(self, name)!r}, wanted one of {known}")
        if self.window is not None and self.window < 1:
            raise ValueError(f"adapter: window={self.window}, wanted at least 1 token")
        mixing = (self.alpha_q, self.alpha_k, self.alpha_v, self.collapse)
        if any(place is None for place in mixing) and any(place is not None for place in mixing):
            raise ValueError("adapter: name all of alpha_q, alpha_k, alpha_v, collapse, or set all to None for "
                             "multi-head attention")

    def read(self, layer: Any) -> Weights:
        """The layer's weights, as views of its parameters.

        Raises:
            ValueError: a name that the layer does not have, or a tensor that does not have the axes.
        """
        if self.weights is not None:
            return self.weights(layer)
        heads = self._number(layer, "heads")
        q, q_bias = self._projection(layer, "q", heads)
        kv_heads = heads if self.kv_heads is None else self._number(layer, "kv_heads")
        if self.alpha_k is not None:
            pseudo = self._number(layer, "pseudo")
            alpha_q, alpha_k, alpha_v = (self._rearranged(layer, name, self.alpha, "source head pseudo")
                                         for name in ("alpha_q", "alpha_k", "alpha_v"))
            collapse = self._rearranged(layer, "collapse", self.r, "out head pseudo", pseudo=pseudo)
            kv_heads = alpha_k.shape[1]
            self._check("alpha_q", alpha_q, (heads, heads, pseudo))
            self._check("alpha_k", alpha_k, (kv_heads, kv_heads, pseudo))
            self._check("alpha_v", alpha_v, (kv_heads, kv_heads, pseudo))
            self._check("collapse", collapse, (heads, heads, pseudo))
        else:
            alpha_q = collapse = torch.eye(heads, dtype=q.dtype, device=q.device)[:, :, None]
            alpha_k = alpha_v = torch.eye(kv_heads, dtype=q.dtype, device=q.device)[:, :, None]
        k, k_bias = self._projection(layer, "k", kv_heads)
        v, v_bias = self._projection(layer, "v", kv_heads)
        out, out_bias = (None, None) if self.out is None else self._place(layer, "out")
        return Weights(q, k, v, q_bias, k_bias, v_bias, alpha_q, alpha_k, alpha_v, collapse, out, out_bias)

    def _number(self, layer: Any, name: str) -> int:
        place = getattr(self, name)
        return place if isinstance(place, int) else int(attribute(layer, place, name))

    def _place(self, layer: Any, name: str) -> tuple[Tensor, Tensor | None]:
        place = getattr(self, name)
        found = place(layer) if callable(place) else attribute(layer, place, name)
        if isinstance(found, nn.Linear):
            return found.weight, found.bias
        if not isinstance(found, Tensor):
            raise ValueError(f"adapter: {name} is a {type(found).__name__}, wanted a tensor or an nn.Linear")
        return found, None

    def _projection(self, layer: Any, name: str, heads: int) -> tuple[Tensor, Tensor | None]:
        weight, bias = self._place(layer, name)
        weight = arranged(name, weight, self.projection, "head model feature", head=heads)
        return weight, None if bias is None else bias.unflatten(0, (heads, -1))

    def _rearranged(self, layer: Any, name: str, axes: str, wanted: str, **sizes: int) -> Tensor:
        return arranged(name, self._place(layer, name)[0], axes, wanted, **sizes)

    @staticmethod
    def _check(name: str, found: Tensor, wanted: tuple[int, ...]) -> None:
        if tuple(found.shape) != wanted:
            raise ValueError(f"adapter: {name} has shape {tuple(found.shape)} in the formula's order, wanted {wanted}; "
                             "say its axes, or H and P")


def attribute(layer: Any, path: str, name: str) -> Any:
    """A dotted attribute.

    Raises:
        ValueError: it does not exist.
    """
    found = layer
    for part in path.split("."):
        if not hasattr(found, part):
            raise ValueError(f"adapter: {name}={path!r}, but {type(found).__name__} has no attribute {part!r}")
        found = getattr(found, part)
    return found


def arranged(name: str, t: Tensor, axes: str, wanted: str, **sizes: int) -> Tensor:
    """A tensor in the order of the formula.

    Raises:
        ValueError: its shape does not fit its axes.
    """
    used = {axis: size for axis, size in sizes.items() if axis in axes.replace("(", " ").replace(")", " ").split()}
    try:
        return rearrange(t, f"{axes} -> {wanted}", **used)
    except Exception as error:
        raise ValueError(f"adapter: {name} has shape {tuple(t.shape)}, which does not read as {axes!r} with {used}: "
                         f"{str(error).splitlines()[-1].strip()}") from error


def built_in(layer: Any) -> Adapter | None:
    """The adapter of a layer that the kit knows: this project's and ``torch.nn.MultiheadAttention``."""
    from iha_theory.torch_layer import InterleavedHeadAttention

    if isinstance(layer, InterleavedHeadAttention):
        mask: Any = layer.mask
        rope: Any = layer.rope
        # Hard attention with a temperature is softmax at it.
        attention: Any = "softmax" if layer.temperature is not None else layer.attention
        phased = rope == "virtual" and layer.num_pseudo_heads > 1
        return Adapter(
            attention=attention, mask=mask, window=layer.window, rope=rope, rope_base=layer.rope_base,
            starts_as_mha=layer.init == "mha" and attention == "softmax" and not phased,
            scale=layer.scale if attention == "softmax" else None,
            features=layer.embed_dim, call=_call_batched, decode=None if mask == "none" else _decode,
            out=None if layer.out_proj is None else "out_proj", alpha_q="mixing.alpha_q", alpha_k="mixing.alpha_k",
            alpha_v="mixing.alpha_v", collapse="mixing.collapse", r="out head pseudo")
    if isinstance(layer, nn.MultiheadAttention):
        return Adapter(claims="mha", mask="none", features=layer.embed_dim, call=_call_batched, weights=_of_mha)
    return None


def _call_batched(layer: Any, x: Tensor, padding: Tensor | None) -> Tensor:
    x = x if layer.batch_first else x.transpose(0, 1)
    y = layer(x, x, x, key_padding_mask=padding, need_weights=False)[0]
    return y if layer.batch_first else y.transpose(0, 1)


def _decode(layer: Any, x: Tensor) -> Tensor:
    cache = layer.new_cache(x.shape[0], x.shape[1], dtype=x.dtype)
    steps = []
    for token in x.split(1, 1):
        step = token if layer.batch_first else token.transpose(0, 1)
        y = layer(step, need_weights=False, cache=cache)[0]
        steps.append(y if layer.batch_first else y.transpose(0, 1))
    return torch.cat(steps, 1)


def _of_mha(layer: nn.MultiheadAttention) -> Weights:
    heads = layer.num_heads
    weights = (layer.in_proj_weight.chunk(3) if layer.in_proj_weight is not None
               else (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight))
    biases = (None,) * 3 if layer.in_proj_bias is None else layer.in_proj_bias.chunk(3)
    q, k, v = (w.unflatten(0, (heads, -1)).transpose(1, 2) for w in weights)
    q_bias, k_bias, v_bias = (None if b is None else b.unflatten(0, (heads, -1)) for b in biases)
    one = torch.eye(heads, dtype=q.dtype, device=q.device)[:, :, None]
    return Weights(q, k, v, q_bias, k_bias, v_bias, one, one, one, one, layer.out_proj.weight, layer.out_proj.bias)
