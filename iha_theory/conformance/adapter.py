"""What a layer says of itself, how it is called, and where its weights live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

import torch
from torch import Tensor, nn

from iha_theory.conformance.weights import Weights, arranged, checked

#: A dotted attribute, or a function of the layer that returns the tensor, or a weight and its bias.
Place = str | Callable[[Any], Tensor | tuple[Tensor, Tensor | None]] | None


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
        features: D; None reads it from the layer. tokens: the most that the layer takes; None: any number.
        call: ``f(layer, x, padding)``, x (batch, token, D), padding None or (batch, token) Boolean, True at pads;
            returns (batch, token, D). None: ``layer(x)``, with ``key_padding_mask`` where forward has it.
        padding: whether ``call`` heeds its padding.
        decode: ``f(layer, x)``: the same output, made token by token with the layer's cache.
        white_box: whether the weights are named below; False leaves the black box.
        q, k, v, out: where the projections are: a dotted attribute that is an ``nn.Linear`` or a tensor, or a function
            of the layer that returns the tensor, or a weight and its bias. out None: no output projection.
        alpha_q, alpha_k, alpha_v, collapse: where the mixing is, in the axes ``alpha`` and ``r``; all None: none, the
            layer is multi-head attention.
        heads, pseudo, kv_heads: H, P and the heads of keys and values, numbers or attributes; kv_heads None: those of
            alpha_k, or H.
        projection, output, alpha, r: axes of q, k and v over head, feature, model; of out over model and feature, all
            heads' side by side; of the alphas over source, head, pseudo; of collapse over out, head, pseudo.
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
    tokens: int | None = None
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
    output: str = "model feature"
    alpha: str = "source head pseudo"
    r: str = "out (head pseudo)"
    weights: Callable[[Any], Weights] | None = None

    def __post_init__(self) -> None:
        allowed = {"claims": ("iha", "mha"), "attention": ("softmax", "linear", "hard"),
                   "mask": (None, "none", "token", "flat"), "rope": (None, "token", "virtual")}
        for name, known in allowed.items():
            if getattr(self, name) not in known:
                raise ValueError(f"adapter: {name}={getattr(self, name)!r}, wanted one of {known}")
        for name, least in (("window", 1), ("features", 1), ("tokens", 5)):
            size = getattr(self, name)
            if size is not None and not (_is_whole(size) and size >= least):
                raise ValueError(f"adapter: {name}={size!r}, wanted a whole number of at least {least}")
        for name in ("scale", "rope_base"):
            number = getattr(self, name)
            if number is not None and not (isinstance(number, int | float) and isfinite(number)):
                raise ValueError(f"adapter: {name}={number!r}, wanted a number")
        for name in ("heads", "pseudo", "kv_heads"):
            place = getattr(self, name)
            number = _is_whole(place) and int(place or 0) > 0
            if not (isinstance(place, str) or number or (place is None and name == "kv_heads")):
                raise ValueError(f"adapter: {name}={place!r}, wanted a whole number or the name of an attribute")
        for name in ("q", "k", "v", "out", "alpha_q", "alpha_k", "alpha_v", "collapse"):
            place = getattr(self, name)
            if not (isinstance(place, str) or callable(place) or (place is None and name not in "qkv")):
                raise ValueError(f"adapter: {name}={place!r}, wanted the name of an attribute or a function of the layer")
        for name in ("call", "decode", "weights"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise ValueError(f"adapter: {name} is a {type(getattr(self, name)).__name__}, wanted a function")
        if self.window is not None and self.mask == "none":
            raise ValueError("adapter: a window reaches back from a token, and wants mask 'token', 'flat' or None")
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
            try:
                return checked(self.weights(layer))
            except Exception as error:
                raise ValueError(f"adapter: reading the weights: {' '.join(str(error).split()) or error!r}") from error
        heads = self._number(layer, "heads")
        q, q_bias = self._projection(layer, "q", heads)
        kv_heads = heads if self.kv_heads is None else self._number(layer, "kv_heads")
        if self.alpha_k is not None:
            pseudo = self._number(layer, "pseudo")
            alpha_q, alpha_k, alpha_v = (self._rearranged(layer, name, self.alpha, "source head pseudo")
                                         for name in ("alpha_q", "alpha_k", "alpha_v"))
            collapse = self._rearranged(layer, "collapse", self.r, "out head pseudo", pseudo=pseudo)
            kv_heads = alpha_k.shape[1]
        else:
            alpha_q = collapse = torch.eye(heads, dtype=q.dtype, device=q.device)[:, :, None]
            alpha_k = alpha_v = torch.eye(kv_heads, dtype=q.dtype, device=q.device)[:, :, None]
        k, k_bias = self._projection(layer, "k", kv_heads)
        v, v_bias = self._projection(layer, "v", kv_heads)
        out, out_bias = (None, None) if self.out is None else self._place(layer, "out")
        if out is not None:
            out = arranged("out", out, self.output, "model feature")
        return checked(Weights(q, k, v, q_bias, k_bias, v_bias, alpha_q, alpha_k, alpha_v, collapse, out, out_bias))

    def _number(self, layer: Any, name: str) -> int:
        place = getattr(self, name)
        number = attribute(layer, place, name) if isinstance(place, str) else place
        if not (_is_whole(number) and number > 0):
            raise ValueError(f"adapter: {name}={place!r} is {number!r}, wanted a whole number of at least 1")
        return number

    def _place(self, layer: Any, name: str) -> tuple[Tensor, Tensor | None]:
        place = getattr(self, name)
        try:
            found = place(layer) if callable(place) else attribute(layer, place, name)
        except ValueError:
            raise
        except Exception as error:
            raise ValueError(f"adapter: {name}: {type(error).__name__}: {' '.join(str(error).split())}") from error
        if isinstance(found, nn.Linear):
            return found.weight, found.bias
        if isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], Tensor):
            return found
        if not isinstance(found, Tensor):
            raise ValueError(f"adapter: {name} is a {type(found).__name__}, wanted a tensor or an nn.Linear")
        return found, None

    def _projection(self, layer: Any, name: str, heads: int) -> tuple[Tensor, Tensor | None]:
        weight, bias = self._place(layer, name)
        weight = arranged(name, weight, self.projection, "head model feature", head=heads)
        if bias is None:
            return weight, None
        if bias.numel() != weight.shape[0] * weight.shape[2]:
            raise ValueError(f"adapter: the bias of {name} has {bias.numel()} entries, wanted one for each of "
                             f"{weight.shape[0]} heads and {weight.shape[2]} features")
        return weight, bias.reshape(heads, -1)

    def _rearranged(self, layer: Any, name: str, axes: str, wanted: str, **sizes: int) -> Tensor:
        return arranged(name, self._place(layer, name)[0], axes, wanted, **sizes)


def _is_whole(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


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
