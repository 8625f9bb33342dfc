"""Interleaved heads inside models of Hugging Face transformers, through that library's attention interface.

Importing this module registers an attention function, and a mask function for it, under the name "iha";
:func:`interleave_heads` gives every attention module of a model its own alpha and R, and switches the model to them.

The model projects, turns (rotary positions) and caches its base heads as before; what it hands over is mixed here. Both
orders agree, since rotary positions are linear and all pseudo-tokens of a token share its position, so the layer is
the one of ``rope="token"``. The model's cache keeps base keys and values, 1/P of what mixed ones would take; a decoding
step therefore mixes all of them again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import sdpa_mask

from iha_theory.torch_arguments import check_sizes
from iha_theory.torch_init import Init, initialize
from iha_theory.torch_kernels import softmax_attention
from iha_theory.torch_masks import Sight
from iha_theory.torch_mixing import Mixing, collapsed, mixed

#: What ``attn_implementation`` is called.
NAME = "iha"
MASKS = ("token", "flat")
#: Arguments of some models that change the scores in ways that the layer does not have.
_CHANGES_SCORES = ("softcap", "s_aux", "position_bias", "head_mask")


class HeadMixing(Mixing):
    """alpha and R of one attention module of a model, found there as ``mixing``.

    Attributes:
        mask: "token": a token sees all pseudo-tokens of the tokens that the model lets it see. "flat": of its own token
            a pseudo-query sees the pseudo-keys up to itself.
    """

    def __init__(self, heads: int, kv_heads: int, pseudo: int, mask: str, *, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(heads, kv_heads, pseudo, device=device, dtype=dtype)
        self.mask = mask

    def freeze(self, *, same_for_all_heads: bool | None = None) -> None:
        """Stop training alpha and R, and skip the pseudo-queries that R ignores; the flat mask skips whole ones alone.

        Raises:
            ValueError: ``same_for_all_heads=False`` under the flat mask.
        """
        flat = self.mask == "flat"
        if flat and same_for_all_heads is False:
            raise ValueError("same_for_all_heads: got False with mask='flat', wanted True: the order of a token's "
                             "pseudo-queries is one for all heads")
        super().freeze(same_for_all_heads=flat if same_for_all_heads is None else same_for_all_heads)

    def sight(self, queries: int, keys: int, seen: Tensor | None, is_causal: bool, dtype: torch.dtype) -> Sight:
        """Who sees whom, the queries being the last of the keys under a causal mask.

        Args:
            seen: (batch or 1, head or 1, query token, key token), Boolean with True where a token is seen, or numbers
                added to the scores; None: ``is_causal`` decides.
        """
        limits = self.limits if self.mask == "flat" else (self.pseudo - 1,) * self.pseudo_queries
        extra = seen
        if seen is not None and seen.dtype == torch.bool:
            extra = torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill(~seen, -torch.inf)
        elif seen is not None:
            extra = seen.to(dtype)
        if self.mask == "flat":
            _check_order(queries, keys, seen, is_causal)
        elif seen is not None or not is_causal:
            # A mask over tokens says all that the token mask says, and more where it is not causal.
            limits = None
        return Sight(queries, keys, self.pseudo, self.pseudo_queries, limits, extra=extra)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mask={self.mask!r}"


def _check_order(queries: int, keys: int, seen: Tensor | None, is_causal: bool) -> None:
    """Whether the mask is causal with the queries' own tokens last, as the flat mask wants."""
    if seen is None:
        if not is_causal:
            raise ValueError("mask: got 'flat' where the model's attention is not causal, wanted 'token'")
        return
    if torch.compiler.is_compiling():
        if queries != keys:
            raise ValueError(f"mask: got 'flat' with {queries} query tokens and a mask over {keys} key tokens in "
                             "compiled code, which cannot look at the mask; wanted 'token', or no compilation")
        return
    looked_at = seen if seen.dtype == torch.bool else seen > torch.finfo(seen.dtype).min / 2
    if looked_at.triu(keys - queries + 1).any():
        raise ValueError("attention_mask: got one in which a token sees later ones, which mask='flat' has no order for; "
                         "wanted a causal one, or mask='token'")
    if queries < keys and not looked_at.diagonal(keys - queries, -2, -1).all():
        raise ValueError("attention_mask: got one in which the new tokens do not see the last keys, as with a static "
                         "cache; mask='flat' wants them to be the last keys: use a dynamic cache, or mask='token'")


def attention(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None,
              dropout: float = 0.0, scaling: float | None = None, is_causal: bool | None = None,
              **others: Any) -> tuple[Tensor, None]:
    """The attention function: base heads in, output heads out; rows that see nothing give zeros.

    Args:
        module: has a :class:`HeadMixing` as ``mixing``.
        query: (batch, head, token N, key). key: (batch, kv head, token S, key). value: (batch, kv head, S, value).
        attention_mask: the library's or the caller's: (batch or 1, head or 1, N, S), Boolean with True where a token is
            seen, or numbers added to the scores. None: causal from the first key on where ``is_causal``, or else the
            module, says so; one query sees all keys.
        dropout: on the attention weights. scaling: of the scores; None takes key**(-1/2).

    Returns:
        (batch, N, head, value), and None for the weights.

    Raises:
        ValueError: a module without mixing; other heads than its mixing has; a mask of another shape or dtype; an
            argument that changes the scores.
    """
    mixing = getattr(module, "mixing", None)
    if not isinstance(mixing, HeadMixing):
        raise ValueError(f"{type(module).__name__}: has no mixing; call interleave_heads(model) first")
    _check_call(mixing, query, key, value, attention_mask, others)
    queries = query.shape[2]
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if attention_mask is None and causal and queries > 1:
        # So says the interface: without a mask, keys after the queries' own are the room of a static cache.
        key, value = key[:, :, :queries], value[:, :, :queries]
    matrices = mixing(query.dtype)
    q, k, v = (mixed(t.transpose(1, 2), matrix).transpose(1, 2)
               for t, matrix in ((query, matrices.q), (key, matrices.k), (value, matrices.v)))
    sight = mixing.sight(queries, key.shape[2], attention_mask, causal, q.dtype)
    scale = query.shape[3] ** -0.5 if scaling is None else scaling
    attended = softmax_attention(q, k, v, sight, scale, dropout)
    return collapsed(attended.transpose(1, 2), matrices.r).unflatten(2, (mixing.heads, -1)), None


def _check_call(mixing: HeadMixing, query: Tensor, key: Tensor, value: Tensor, seen: Tensor | None,
                others: dict[str, Any]) -> None:
    for name in _CHANGES_SCORES:
        if others.get(name) is not None:
            raise ValueError(f"{name}: got one, wanted none: interleaved heads have plain softmax scores")
    if seen is None and others.get("cu_seq_lens_q") is not None:
        raise ValueError("cu_seq_lens_q: got sequences side by side without a mask that parts them; wanted a mask, or "
                         "one sequence a row")
    for name, tensor, heads in (("query", query, mixing.heads), ("key", key, mixing.kv_heads),
                                ("value", value, mixing.kv_heads)):
        if tensor.dim() != 4 or tensor.shape[1] != heads:
            raise ValueError(f"{name}: got shape {tuple(tensor.shape)}, wanted (batch, {heads} heads, token, feature), "
                             "as the mixing has them")
    if seen is None:
        return
    if seen.dtype != torch.bool and not seen.is_floating_point():
        raise ValueError(f"attention_mask: got dtype {seen.dtype}, wanted bool (True: seen) or a floating-point type "
                         "(added)")
    batch, heads, queries, keys = *query.shape[:3], key.shape[2]
    if (seen.dim() != 4 or seen.shape[0] not in (1, batch) or seen.shape[1] not in (1, heads)
            or seen.shape[2:] != (queries, keys)):
        raise ValueError(f"attention_mask: got shape {tuple(seen.shape)}, wanted (batch, head, query token, key token) "
                         f"{(batch, heads, queries, keys)}, where batch and head may be 1")


AttentionInterface.register(NAME, attention)
# Without a mask function under the same name the library would make no masks, and padding and windows would be lost.
AttentionMaskInterface.register(NAME, sdpa_mask)


def interleave_heads(model: nn.Module, num_pseudo_heads: int | None = None, *, mask: str = "token", init: Init = "mha",
                     noise: float = 0.05, generator: torch.Generator | None = None) -> tuple[str, ...]:
    """Give a model's attention interleaved heads, in place: all of its attention modules, or none.

    With ``init="mha"`` the model's outputs stay the same. The mixing is a submodule, ``mixing``, of each attention
    module: it trains, moves and is saved with the model, and :func:`iha_theory.torch_init.parameter_groups` finds it.
    A saved model is loaded by making the model, interleaving it, and ``load_state_dict``; ``from_pretrained`` alone
    would make one without mixing.

    Args:
        model: a ``PreTrainedModel`` whose attention runs through the attention interface, self-attention or cross.
        num_pseudo_heads: P; None takes each module's number of heads.
        mask: "token", for every kind of attention, or "flat", for causal attention; see :class:`HeadMixing`.
        init, noise, generator: of alpha and R; see :func:`iha_theory.torch_init.initialize`.

    Returns:
        The names of the attention modules, in the order of ``model.named_modules()``.

    Raises:
        ValueError: a model that does not use the interface, has no attention modules, or has interleaved heads
            already; attention that is not causal with "flat"; a size or name that is not possible.
    """
    if not isinstance(model, PreTrainedModel):
        raise ValueError(f"model: got {type(model).__name__}, wanted a transformers.PreTrainedModel")
    if mask not in MASKS:
        raise ValueError(f"mask: got {mask!r}, wanted one of {', '.join(map(repr, MASKS))}")
    if num_pseudo_heads is not None:
        check_sizes(num_pseudo_heads=num_pseudo_heads)
    found: dict[str, nn.Module] = {name: m for name, m in model.named_modules()
                                   if hasattr(m, "is_causal") and hasattr(m, "config")}
    if not found:
        raise ValueError(f"model: got {type(model).__name__}, in which no module has is_causal and config, as attention "
                         "modules of the attention interface have")
    new: dict[str, HeadMixing] = {}
    for name, module in found.items():
        if hasattr(module, "mixing"):
            raise ValueError(f"{name}: has a mixing already; interleave a model once")
        if mask == "flat" and not module.is_causal:
            raise ValueError(f"{name}: is not causal, so that mask='flat' has no order; wanted mask='token'")
        new[name] = _mixing_for(module, num_pseudo_heads, mask)
        initialize(new[name], init, noise, generator)
    _switch(model, found)
    for name, module in found.items():
        module.add_module("mixing", new[name])
    return tuple(found)


def _mixing_for(module: nn.Module, num_pseudo_heads: int | None, mask: str) -> HeadMixing:
    config: Any = module.config
    heads = config.num_attention_heads
    like = next(module.parameters())
    return HeadMixing(heads, getattr(config, "num_key_value_heads", None) or heads, num_pseudo_heads or heads, mask,
                      device=like.device, dtype=like.dtype).train(module.training)


def _switch(model: PreTrainedModel, found: dict[str, nn.Module]) -> None:
    """Set the model's attention function, for all of the modules or for none."""
    before: Any = model.config._attn_implementation
    model.set_attn_implementation(NAME)
    missed = [name for name, module in found.items() if getattr(module.config, "_attn_implementation", None) != NAME]
    if missed:
        model.set_attn_implementation(before)
        raise ValueError(f"model: got {type(model).__name__}, of which {missed[0]} does not run through the attention "
                         "interface; wanted a model that can set its attn_implementation")
