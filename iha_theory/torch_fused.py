"""Softmax attention on torch's private CPU kernels, which return a row's log-sum-exp and take it back in backward.

The kernel's backward computes, from an output o and a log-sum-exp l of each row, the probabilities p = exp(s - l) of
the keys that it is given, and dS = p (dO v^T - dO o^T). If o and l belong to a *larger* set of keys, that is exactly
the part of the gradient that these keys have in the softmax over the larger set. So a row may be cut into pieces by
keys: merge the outputs by their log-sum-exps in forward, hand the merged pair to every piece in backward.

The kernel writes 0 as the log-sum-exp of a row that sees nothing, and such rows give zeros and take no gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from iha_theory.torch_masks import Sight

#: The releases whose private kernels were tested here.
TESTED = ((2, 13),)
_SERVED = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def _release() -> tuple[int, int]:
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def why_not_fused(q: Tensor, sight: Sight, dropout: float) -> str:
    """Why the private kernels do not serve this call; empty if they do."""
    if _release() not in TESTED:
        return f"torch {torch.__version__} is not among the tested releases"
    if q.device.type != "cpu":
        return f"the device is {q.device.type}, and only the CPU's kernel was tested"
    if q.dtype not in _SERVED:
        return f"dtype {q.dtype}"
    if dropout:
        return "dropout in training"
    if sight.extra is not None:
        return "attn_mask over pairs of tokens"
    if sight.padding is not None and sight.padding.requires_grad:
        return "a key_padding_mask that is trained"
    return ""


def _forward(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float,
             is_causal: bool) -> tuple[Tensor, Tensor]:
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, is_causal, attn_mask=bias,
                                                                     scale=scale)


def _backward(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, total: Tensor, bias: Tensor | None,
              scale: float, is_causal: bool) -> tuple[Tensor, Tensor, Tensor]:
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        grad, q, k, v, out, total, 0.0, is_causal, attn_mask=bias, scale=scale)


Shape = tuple[int, int, int, int, tuple[int, ...], int | None]


def fused_attention(q: Tensor, k: Tensor, v: Tensor, sight: Sight, scale: float) -> Tensor:
    """Softmax attention under a causal sight without ``extra``; see :func:`why_not_fused`: (batch, head, N Q, value)."""
    return _Attention.apply(q, k, v, sight.padding, scale, _shape(sight))[0]  # type: ignore[index]


def _shape(sight: Sight) -> Shape:
    """A sight without its tensors."""
    return (sight.queries, sight.keys, sight.pseudo_keys, sight.pseudo_queries, sight.limits or (), sight.window)


def _is_whole(sight: Sight) -> bool:
    """Whether one call of the flat causal kernel serves it, together with the later pseudo-keys of a token."""
    return sight.pseudo_queries == sight.pseudo_keys and sight.offset == 0 and not sight.is_windowed


class _Attention(torch.autograd.Function):
    """(q, k, v, padding, scale, shape) to (output, log-sum-exp of each row)."""

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, padding: Tensor | None, scale: float,
                shape: Shape) -> tuple[Tensor, Tensor]:
        sight = Sight(*shape, padding=padding)
        if not _is_whole(sight):
            return _banded(q, k, v, sight, scale)
        out, total = _forward(q, k, v, sight.virtual_padding(), scale, True)
        return _Later(q, k, v, sight, scale).merged(out, total) if sight.is_token else (out, total)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple[Tensor, Tensor]) -> None:
        q, k, v, padding, ctx.scale, ctx.shape = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(q, k, v, padding, *output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, padding, out, total = ctx.saved_tensors
        grad = grads[0]
        return *_Gradient.apply(grad, q, k, v, out, total, padding, ctx.scale, ctx.shape), None, None, None  # type: ignore[misc]

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *inputs: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        return _folded(_Attention, info, in_dims, inputs)


class _Gradient(torch.autograd.Function):
    """(gradient, q, k, v, output, log-sum-exp, padding, scale, shape) to the gradients of q, k and v."""

    @staticmethod
    def forward(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, total: Tensor, padding: Tensor | None,
                scale: float, shape: Shape) -> tuple[Tensor, ...]:
        sight = Sight(*shape, padding=padding)
        if not _is_whole(sight):
            return _banded_gradients(grad, q, k, v, out, total, sight, scale)
        grads = _backward(grad, q, k, v, out, total, sight.virtual_padding(), scale, True)
        return _Later(q, k, v, sight, scale).added(grads, grad, out, total) if sight.is_token else grads

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple[Tensor, ...]) -> None:
        """Nothing is kept: there is no second derivative."""

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, ...]:
        raise NotImplementedError("the fused kernels have no second derivative; use kernel='chunked' under "
                                  "torch.nn.attention.sdpa_kernel(SDPBackend.MATH)")

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *inputs: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        return _folded(_Gradient, info, in_dims, inputs)


def _folded(function: type[torch.autograd.Function], info: Any, in_dims: tuple,
            inputs: tuple) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """vmap by folding its axis into the batch, the first axis of every tensor here."""
    def fold(t: Any, axis: int | None) -> Any:
        if not isinstance(t, Tensor):
            return t
        return (t.expand(info.batch_size, *t.shape) if axis is None else t.movedim(axis, 0)).flatten(0, 1)

    results = function.apply(*(fold(t, axis) for t, axis in zip(inputs, in_dims, strict=True)))
    unfolded = tuple(t.unflatten(0, (info.batch_size, t.shape[0] // info.batch_size)) for t in results)  # type: ignore
    return unfolded, (0,) * len(unfolded)


class _Later:
    """The pseudo-keys j + s, s = 1, ..., P-1-j, of a row's own token, which the flat mask hides from pseudo-query j.

    Arrays are (batch, token, pseudo, kv head, group, ...), views of what the kernel takes; one step for each s.
    """

    def __init__(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight, scale: float) -> None:
        self.kv_heads, self.pseudo, self.scale = k.shape[1], sight.pseudo_keys, scale
        self.q, self.k, self.v = self.tokens(q), self.tokens(k), self.tokens(v)
        self.padding = None if sight.padding is None else sight.padding[:, :, None, None, None]

    def tokens(self, t: Tensor) -> Tensor:
        """(batch, head, N P, ...) to (batch, N, P, kv head, group, ...), in float32 at least."""
        t = t.to(torch.promote_types(t.dtype, torch.float32)).transpose(1, 2)
        return t.unflatten(2, (self.kv_heads, -1)).unflatten(1, (-1, self.pseudo))

    def joined(self, t: Tensor, dtype: torch.dtype) -> Tensor:
        """Back to (batch, head, N P, ...)."""
        return t.flatten(1, 2).flatten(2, 3).transpose(1, 2).to(dtype)

    def steps(self) -> Iterator[tuple[slice, slice, Tensor]]:
        """The rows, their keys, and the scores (batch, token, row, kv head, group) of each s."""
        for s in range(1, self.pseudo):
            rows, keys = slice(0, self.pseudo - s), slice(s, self.pseudo)
            scores = (self.q[:, :, rows] * self.k[:, :, keys]).sum(-1) * self.scale
            yield rows, keys, scores if self.padding is None else scores + self.padding

    def merged(self, out: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        """The kernel's output and log-sum-exps, with these keys."""
        flat, result, steps = self.tokens(total), self.tokens(out), list(self.steps())
        everything = flat.clone()
        for rows, _, scores in steps:
            everything[:, :, rows] = torch.logaddexp(everything[:, :, rows], scores)
        result = result * torch.exp(flat - everything)[..., None]
        for rows, keys, scores in steps:
            share = torch.exp(scores - everything[:, :, rows])
            result[:, :, rows].addcmul_(share[..., None], self.v[:, :, keys])
        return self.joined(result, out.dtype), self.joined(everything, total.dtype)

    def added(self, grads: tuple[Tensor, ...], grad: Tensor, out: Tensor, total: Tensor) -> tuple[Tensor, ...]:
        """The kernel's gradients of q, k and v, with what these keys add."""
        dq, dk, dv = (self.tokens(t) for t in grads)
        g, everything = self.tokens(grad), self.tokens(total)
        mean = (g * self.tokens(out)).sum(-1)
        for rows, keys, scores in self.steps():
            p, above = torch.exp(scores - everything[:, :, rows])[..., None], g[:, :, rows]
            dp = (above * self.v[:, :, keys]).sum(-1)
            ds = p * ((dp - mean[:, :, rows]) * self.scale)[..., None]
            dq[:, :, rows].addcmul_(ds, self.k[:, :, keys])
            if self.q.shape[4] == 1:
                dk[:, :, keys].addcmul_(ds, self.q[:, :, rows])
                dv[:, :, keys].addcmul_(p, above)
            else:
                dk[:, :, keys] += (ds * self.q[:, :, rows]).sum(4, keepdim=True)
                dv[:, :, keys] += (p * above).sum(4, keepdim=True)
        return tuple(self.joined(new, old.dtype) for new, old in zip((dq, dk, dv), grads, strict=True))


def _banded(q: Tensor, k: Tensor, v: Tensor, sight: Sight, scale: float) -> tuple[Tensor, Tensor]:
    """Chunks of queries against the keys that they see. Every row is whole, so nothing is merged."""
    out = torch.empty_like(q)
    total = torch.empty(q.shape[:3], dtype=torch.promote_types(q.dtype, torch.float32), device=q.device)
    for rows, seen, bias in _spans(q, sight):
        part = _forward(q[:, :, rows], k[:, :, seen], v[:, :, seen], bias, scale, False)
        out[:, :, rows], total[:, :, rows] = part
    return out, total


def _banded_gradients(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, total: Tensor, sight: Sight,
                      scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """The keys' gradients add up over the chunks."""
    dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for rows, seen, bias in _spans(q, sight):
        parts = _backward(grad[:, :, rows], q[:, :, rows], k[:, :, seen], v[:, :, seen], out[:, :, rows],
                          total[:, :, rows], bias, scale, False)
        dq[:, :, rows] = parts[0]
        dk[:, :, seen] += parts[1]
        dv[:, :, seen] += parts[2]
    return dq, dk, dv


def _spans(q: Tensor, sight: Sight) -> Iterator[tuple[slice, slice, Tensor | None]]:
    """Each chunk's virtual queries, virtual keys and bias; the kernel takes biases of four axes."""
    for chunk in sight.chunks(q.dtype, q.device):
        bias = chunk.bias if chunk.bias is None or chunk.bias.dim() == 4 else chunk.bias[None, None]
        yield (slice(chunk.first * sight.pseudo_queries, chunk.last * sight.pseudo_queries),
               slice(chunk.lo * sight.pseudo_keys, chunk.hi * sight.pseudo_keys), bias)
