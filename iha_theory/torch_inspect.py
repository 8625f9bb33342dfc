"""What a layer has become: how far from multi-head attention, which pseudo-heads are read, what each of them does."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from iha_theory.torch_arguments import checked
from iha_theory.torch_kernels import hard_attention, linear_attention, softmax_attention
from iha_theory.torch_layer import InterleavedHeadAttention


@dataclass(frozen=True, eq=False)
class Inspection:
    """How a layer's mixing stands to multi-head attention.

    Attributes:
        distance: the Euclidean distance of (alpha^K, R) to the nearest ones with which the layer's form is multi-head
            attention: all pseudo-keys of a head alike, and each output head reading one pseudo-head (under the flat
            mask the last of a head, or P = 1). alpha^Q and alpha^V are free there.
        relative: the distance over the norm of (alpha^K, R).
        keys, collapse: the parts of the distance in alpha^K and in R; distance**2 is the sum of their squares.
        why_not_mha: None where ``to_mha()`` exists, otherwise its reason.
        reads: (head, pseudo), norm of the column of R with which the output heads read each pseudo-head.
        alive: (head, pseudo), whether the output heads read it. The pseudo-keys and pseudo-values of one that is not
            read still count: the pseudo-queries that are read see them.
    """

    distance: float
    relative: float
    keys: float
    collapse: float
    why_not_mha: str | None
    reads: Tensor
    alive: Tensor

    def __str__(self) -> str:
        heads, pseudo = self.alive.shape
        form = "is multi-head attention" if self.why_not_mha is None else f"is no multi-head attention: {self.why_not_mha}"
        norms = [[f"{float(norm):.3g}" if on else "-" for norm, on in zip(row, live, strict=True)]
                 for row, live in zip(self.reads, self.alive, strict=True)]
        rows = [f"  head {h}: {' '.join(row)}" for h, row in enumerate(norms)]
        return "\n".join([
            f"distance to multi-head attention: {self.distance:.3g} (relative {self.relative:.3g}; "
            f"keys {self.keys:.3g}, R {self.collapse:.3g})", form,
            f"pseudo-heads that R reads: {int(self.alive.sum())} of {heads * pseudo}; norms, - where unread", *rows])


@torch.no_grad()
def inspect_layer(layer: InterleavedHeadAttention, *, threshold: float = 0.0) -> Inspection:
    """The inspection of a layer, in float64.

    Args:
        threshold: a pseudo-head is alive if its norm in R exceeds this times the largest; 0: if R reads it at all.

    Raises:
        ValueError: a threshold outside [0, 1).
    """
    if not 0 <= threshold < 1:
        raise ValueError(f"threshold: got {threshold}, wanted a fraction in [0, 1)")
    alpha_k, r = (t.detach().double().cpu() for t in (layer.mixing.alpha_k, layer.mixing.collapse))
    apart = alpha_k - alpha_k[:, :, :1]
    keys = (apart - apart.mean(2, keepdim=True)).norm()
    allowed = r[:, :, -1:] if layer.mask == "flat" else r
    # The nearest row with one entry keeps its largest.
    kept = allowed.flatten(1).abs().argmax(1, keepdim=True)
    rest = r.clone()
    (rest[:, :, -1] if layer.mask == "flat" else rest.view(len(r), -1)).scatter_(1, kept, 0.0)
    collapse = rest.norm()
    distance, size = torch.hypot(keys, collapse), torch.hypot(alpha_k.norm(), r.norm())
    reads = r.norm(dim=0)
    why_not = None
    try:
        layer.to_mha()
    except ValueError as error:
        why_not = str(error)
    return Inspection(float(distance), float(distance / size) if size else 0.0, float(keys), float(collapse), why_not,
                      reads, reads > threshold * reads.max())


@dataclass(frozen=True, eq=False)
class Operators:
    """What each pseudo-head does to tokens, the mixing multiplied out, in float64 on the CPU.

    H heads, H_kv kv heads, P pseudo-heads, E = embed_dim. Attention's scores are those of ``query x + query_bias`` with
    ``key y + key_bias``; what it gathers of ``value y + value_bias`` is multiplied by ``output`` and summed over heads
    and pseudo-heads, and ``output_bias`` is added.

    Attributes:
        query: (H, P, d_k, E). key: (H_kv, P, d_k, kdim). value: (H_kv, P, d_v, vdim).
        query_bias, key_bias, value_bias: (H or H_kv, P, d_k or d_v), zeros where the layer has none.
        output: (H, P, E, d_v); without an output projection H d_v stands for E. output_bias: (E,).
    """

    query: Tensor
    key: Tensor
    value: Tensor
    query_bias: Tensor
    key_bias: Tensor
    value_bias: Tensor
    output: Tensor
    output_bias: Tensor

    def __str__(self) -> str:
        heads, pseudo = self.output.shape[:2]
        group = heads // self.value.shape[0]
        rows = [f"  head {h}: " + " ".join(f"{float((self.output[h, j] @ self.value[h // group, j]).norm()):.3g}"
                                          for j in range(pseudo)) for h in range(heads)]
        return "\n".join(["norm of output times value, by head and pseudo-head", *rows])


@torch.no_grad()
def effective_operators(layer: InterleavedHeadAttention) -> Operators:
    """The operators of every pseudo-head, those that R ignores included."""
    heads, width, value_dim = layer.num_heads, layer.head_dim, layer.value_dim

    def mixed_in(projection: torch.nn.Linear, alpha: Tensor, width: int) -> tuple[Tensor, Tensor]:
        weight = projection.weight.double().cpu()
        bias = weight.new_zeros(len(weight)) if projection.bias is None else projection.bias.double().cpu()
        alpha = alpha.double().cpu()
        return (torch.einsum("mhj,mde->hjde", alpha, weight.view(-1, width, weight.shape[1])),
                torch.einsum("mhj,md->hjd", alpha, bias.view(-1, width)))

    mixing, out = layer.mixing, layer.out_proj
    query, query_bias = mixed_in(layer.q_proj, mixing.alpha_q, width)
    key, key_bias = mixed_in(layer.k_proj, mixing.alpha_k, width)
    value, value_bias = mixed_in(layer.v_proj, mixing.alpha_v, value_dim)
    last = torch.eye(heads * value_dim, dtype=torch.float64) if out is None else out.weight.double().cpu()
    output = torch.einsum("ohj,eod->hjed", mixing.collapse.double().cpu(), last.view(len(last), heads, value_dim))
    output_bias = last.new_zeros(len(last)) if out is None or out.bias is None else out.bias.double().cpu()
    return Operators(query, key, value, query_bias, key_bias, value_bias, output, output_bias)


@torch.no_grad()
def attention_patterns(layer: InterleavedHeadAttention, query: Tensor, key: Tensor | None = None,
                       value: Tensor | None = None, *, key_padding_mask: Tensor | None = None,
                       attn_mask: Tensor | None = None, position_ids: Tensor | None = None) -> Tensor:
    """What every pseudo-query takes from every pseudo-key, without dropout; quadratic in N P, for inspection.

    Arguments as those of the layer's forward.

    Returns:
        (batch, head, N, Q, S, P): Q is P, or the number of pseudo-queries that ``freeze_mixing`` left. Linear
        attention gives its scores.
    """
    given = checked(layer, query, key, value, key_padding_mask, attn_mask, False, position_ids, None)
    q, k, _, _ = layer._pseudo(given, None)
    # Attention to the unit vectors is the weights themselves.
    unit = torch.eye(k.shape[2], dtype=k.dtype, device=k.device).expand(*k.shape[:2], -1, -1)
    if layer._act == "softmax":
        weights = softmax_attention(q, k, unit, given.sight, layer.scale, kernel="chunked")
    else:
        weights = (hard_attention if layer._act == "hard" else linear_attention)(q, k, unit, given.sight)
    return weights.unflatten(3, (-1, layer.num_pseudo_heads)).unflatten(2, (-1, layer.mixing.pseudo_queries))
