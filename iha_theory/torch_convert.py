"""Between the layer, the book's weights and ``torch.nn.MultiheadAttention``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from iha_theory.layer import IHA, MIXING
from iha_theory.scalars import to_float
from iha_theory.torch_init import copies

if TYPE_CHECKING:
    from iha_theory.torch_layer import InterleavedHeadAttention

Layer = TypeVar("Layer", bound="InterleavedHeadAttention")


@torch.no_grad()
def from_weights(kind: type[Layer], weights: IHA, **options: Any) -> Layer:
    """See :meth:`InterleavedHeadAttention.from_weights`."""
    size = weights.sizes
    if not size["source"] == size["head"] == size["out"]:
        raise ValueError(f"from_weights: got source={size['source']}, head={size['head']}, out={size['out']}; wanted "
                         "all equal to the number of heads")
    layer = kind(size["model"], size["head"], size["pseudo"], head_dim=size["key"], value_dim=size["value"], bias=False,
                 out_proj=False, **options)
    for projection, array in ((layer.q_proj, weights.w_q), (layer.k_proj, weights.w_k), (layer.v_proj, weights.w_v)):
        projection.weight.copy_(_tensor(array).transpose(1, 2).flatten(0, 1))
    for name in MIXING:
        array = getattr(weights, name)
        parameter: Tensor = getattr(layer.mixing, name)
        parameter.copy_(copies(size["head"], 1, parameter) if array is None else _tensor(array))
    return layer


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(to_float(array)))


def _array(t: Tensor) -> np.ndarray:
    return t.detach().to("cpu", torch.float64).numpy()


def to_weights(layer: InterleavedHeadAttention) -> IHA:
    """See :meth:`InterleavedHeadAttention.to_weights`."""
    if layer.out_proj is not None:
        raise ValueError("to_weights: the layer has an output projection, the book's weights have none; make the layer "
                         "with out_proj=False")
    if layer.q_proj.bias is not None:
        raise ValueError("to_weights: the layer has biases, the book's weights have none; make the layer with "
                         "bias=False")
    if not layer.kdim == layer.vdim == layer.embed_dim:
        raise ValueError(f"to_weights: got kdim={layer.kdim}, vdim={layer.vdim}, wanted embed_dim={layer.embed_dim} "
                         "for both")
    group = layer.num_heads // layer.num_kv_heads
    w_q, w_k, w_v = (np.swapaxes(_array(projection.weight).reshape(-1, width, layer.embed_dim), 1, 2).copy()
                     for projection, width in ((layer.q_proj, layer.head_dim), (layer.k_proj, layer.head_dim),
                                               (layer.v_proj, layer.value_dim)))
    alpha_k, alpha_v = (written_out(_array(t), group) for t in (layer.mixing.alpha_k, layer.mixing.alpha_v))
    return IHA(w_q, w_k.repeat(group, 0), w_v.repeat(group, 0), _array(layer.mixing.alpha_q).copy(), alpha_k, alpha_v,
               _array(layer.mixing.collapse).copy())


def written_out(alpha: np.ndarray, group: int) -> np.ndarray:
    """(kv source, kv head, pseudo) as (source, head, pseudo): the first copy of a shared base head counts."""
    if group == 1:
        return alpha.copy()
    sources, heads, pseudo = alpha.shape
    result = np.zeros((sources * group, heads * group, pseudo))
    result[::group] = alpha.repeat(group, 1)
    return result


@torch.no_grad()
def from_mha(kind: type[Layer], mha: nn.MultiheadAttention, num_pseudo_heads: int | None, **options: Any) -> Layer:
    """See :meth:`InterleavedHeadAttention.from_mha`."""
    if mha.add_zero_attn:
        raise ValueError("from_mha: got add_zero_attn=True, wanted False: it adds a key and a value of zeros, which "
                         "no token has")
    if mha.bias_k is not None or mha.bias_v is not None:
        raise ValueError("from_mha: got bias_k and bias_v, wanted add_bias_kv=False: they add a key and a value that "
                         "no token has")
    like = mha.out_proj.weight
    layer = kind(mha.embed_dim, mha.num_heads, num_pseudo_heads, kdim=mha.kdim, vdim=mha.vdim,
                 bias=mha.in_proj_bias is not None, dropout=mha.dropout, batch_first=mha.batch_first, device=like.device,
                 dtype=like.dtype, **options)
    targets = (layer.q_proj, layer.k_proj, layer.v_proj)
    weights = ((mha.q_proj_weight, mha.k_proj_weight, mha.v_proj_weight) if mha.in_proj_weight is None
               else mha.in_proj_weight.chunk(3))
    for projection, weight in zip(targets, weights, strict=True):
        projection.weight.copy_(weight)
    if mha.in_proj_bias is not None:
        for projection, bias in zip(targets, mha.in_proj_bias.chunk(3), strict=True):
            projection.bias.copy_(bias)
    if layer.out_proj is not None:
        layer.out_proj.weight.copy_(mha.out_proj.weight)
        if mha.out_proj.bias is not None:
            layer.out_proj.bias.copy_(mha.out_proj.bias)
    layer.train(mha.training)
    return layer


@torch.no_grad()
def to_mha(layer: InterleavedHeadAttention) -> nn.MultiheadAttention:
    """See :meth:`InterleavedHeadAttention.to_mha`. A causal mask of the layer becomes the caller's attn_mask."""
    _refuse_what_mha_lacks(layer)
    pick = _picked(layer)
    heads, width, group = layer.num_heads, layer.head_dim, layer.num_heads // layer.num_kv_heads
    mixing, head = layer.mixing, torch.arange(layer.num_heads)
    alpha_k, alpha_v = (torch.from_numpy(written_out(_array(t), group)) for t in (mixing.alpha_k, mixing.alpha_v))
    h, j = pick // layer.num_pseudo_heads, pick % layer.num_pseudo_heads
    r = mixing.collapse.double().cpu()[head, h, j]
    temperature = 1.0 if layer.temperature is None else layer.temperature
    # (head out, source): each output head's base heads.
    maps = (mixing.alpha_q.double().cpu()[:, h, j].T / temperature, alpha_k[:, h, 0].T,
            alpha_v.mean(2)[:, h].T * r[:, None])
    out = layer.out_proj
    like = layer.q_proj.weight
    made: dict[str, Any] = {"device": like.device, "dtype": like.dtype}
    mha = nn.MultiheadAttention(layer.embed_dim, heads, layer.dropout, bias=layer.q_proj.bias is not None,
                                kdim=layer.kdim, vdim=layer.vdim, batch_first=layer.batch_first, **made)
    targets = ((mha.q_proj_weight, mha.k_proj_weight, mha.v_proj_weight) if mha.in_proj_weight is None
               else mha.in_proj_weight.chunk(3))
    for at, (matrix, projection) in enumerate(zip(maps, (layer.q_proj, layer.k_proj, layer.v_proj), strict=True)):
        def folded(t: Tensor, matrix: Tensor = matrix, shared: int = 1 if at == 0 else group) -> Tensor:
            base = t.double().cpu().view(heads // shared, width, -1).repeat_interleave(shared, 0)
            return torch.einsum("om,mdx->odx", matrix, base).flatten(0, 1)

        targets[at].copy_(folded(projection.weight))
        if mha.in_proj_bias is not None:
            mha.in_proj_bias.chunk(3)[at].copy_(folded(projection.bias)[:, 0])
    mha.out_proj.weight.copy_(torch.eye(layer.embed_dim) if out is None else out.weight)
    if mha.out_proj.bias is not None and out is not None:
        mha.out_proj.bias.copy_(out.bias)
    return mha.train(layer.training)


def _refuse_what_mha_lacks(layer: InterleavedHeadAttention) -> None:
    for what, got, wanted in (("attention", layer.attention, "softmax"), ("rope", layer.rope, None),
                              ("window", layer.window, None)):
        if got != wanted:
            raise ValueError(f"to_mha: got {what}={got!r}, wanted {wanted!r}: nn.MultiheadAttention has no such thing")
    for what, got in (("head_dim", layer.head_dim), ("value_dim", layer.value_dim)):
        if got * layer.num_heads != layer.embed_dim:
            raise ValueError(f"to_mha: got {what}={got}, wanted embed_dim / num_heads = "
                             f"{layer.embed_dim // layer.num_heads}")


def _picked(layer: InterleavedHeadAttention) -> Tensor:
    """(out,): the column h P + j of R that each output head reads; ValueError where the layer is no MHA by its form."""
    mixing = layer.mixing
    keys = mixing.alpha_k
    if not torch.equal(keys, keys[:, :, :1].expand_as(keys)):
        h, j = (keys != keys[:, :, :1]).any(0).nonzero()[0].tolist()
        raise ValueError(f"to_mha: pseudo-key {j} of kv head {h} is mixed unlike pseudo-key 0; a layer with different "
                         "pseudo-keys is no multi-head attention")
    read = mixing.collapse.flatten(1) != 0
    many = (read.sum(1) > 1).nonzero()
    if len(many):
        raise ValueError(f"to_mha: output head {int(many[0])} reads {int(read[many[0]].sum())} pseudo-heads, wanted "
                         "one")
    pick = read.int().argmax(1).cpu()
    j = pick % layer.num_pseudo_heads
    early = read.any(1).cpu() & (j < layer.num_pseudo_heads - 1)
    if layer.mask == "flat" and early.any():
        raise ValueError(f"to_mha: under the flat mask output head {int(early.nonzero()[0])} reads pseudo-head "
                         f"{int(j[early][0])}, which does not see all copies of its own token; wanted the last, "
                         f"{layer.num_pseudo_heads - 1}")
    return pick
