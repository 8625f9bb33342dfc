"""Algorithm 1 in torch, plain and in float64, and the variants of it that layers in use compute instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from iha_theory.conformance.weights import Weights
from iha_theory.torch_rotary import turned


@dataclass(frozen=True)
class Formula:
    """How a layer computes; the defaults, with a mask and rotary positions, are Algorithm 1.

    Attributes:
        mask: "none", "token", "flat", or "stacked": flat over the pseudo-major order. window: in tokens.
        scale: of the scores; None is 1 / sqrt(d_k) under softmax, 1 otherwise.
        alone: whether pseudo-query j sees the pseudo-keys j only.
        reshaped: "in", "out" or "both": heads are split or joined by a reshape without the transpose it needs.
        bias_after: whether the biases are added to the pseudo-heads, unmixed. edit: a change of the weights.
    """

    mask: str = "none"
    window: int | None = None
    attention: str = "softmax"
    rope: str | None = None
    rope_base: float = 10000.0
    scale: float | None = None
    alone: bool = False
    reshaped: str = ""
    bias_after: bool = False
    edit: Callable[[Weights], Weights] | None = None

    def __call__(self, weights: Weights, x: Tensor) -> Tensor:
        """(batch, token, D) to (batch, token, model), or (batch, token, out value) without an output projection."""
        w = self.edit(weights) if self.edit else weights
        q, k, v = self.pseudo(w, x)
        return self.finished(w, self._attend(q, k, v, x.shape[1], w.pseudo))

    def pseudo(self, w: Weights, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Pseudo-queries, -keys and -values, (batch, token pseudo, head, width), those of shared heads written out."""
        pairs = ((w.q, w.q_bias), (w.k, w.k_bias), (w.v, w.v_bias))
        q, k, v = (self._split(x, weight, None if self.bias_after else bias) for weight, bias in pairs)
        n, p = x.shape[1], w.pseudo
        token = torch.arange(n)[None, :, None]
        if self.rope == "token":
            q, k = turned(q, token, self.rope_base), turned(k, token, self.rope_base)
        q, k, v = (_mixed(t, a) for t, a in ((q, w.alpha_q), (k, w.alpha_k), (v, w.alpha_v)))
        if self.bias_after:
            q, k, v = (t if bias is None else t + bias for t, (_, bias) in zip((q, k, v), pairs, strict=True))
        if self.rope == "virtual":
            virtual = torch.arange(n * p)[None, :, None]
            q, k = turned(q, virtual, self.rope_base), turned(k, virtual, self.rope_base)
        group = w.heads // k.shape[2]
        return q, k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)

    def finished(self, w: Weights, attended: Tensor) -> Tensor:
        """(batch, token pseudo, head, value), collapsed and through the output projection."""
        output = torch.einsum("bnjhv,ohj->bnov", attended.unflatten(1, (-1, w.pseudo)), w.collapse)
        batch, n = output.shape[:2]
        if self.reshaped in ("out", "both"):
            output = output.transpose(1, 2)
        output = output.reshape(batch, n, -1)
        if w.out is not None:
            output = output @ w.out.mT
        return output if w.out_bias is None else output + w.out_bias

    def _split(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        base = torch.einsum("bnd,hdk->bnhk", x, weight)
        base = base if bias is None else base + bias
        if self.reshaped in ("in", "both"):
            batch, n, heads, width = base.shape
            return base.reshape(batch, heads, n, width).transpose(1, 2)
        return base

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, n: int, p: int) -> Tensor:
        """(batch, token pseudo, head, width) of queries, keys and values to (batch, token pseudo, head, value)."""
        if self.attention == "linear":
            scores = torch.einsum("bqhk,bshk->bhqs", q, k) * (1 if self.scale is None else self.scale)
            return torch.einsum("bhqs,bshv->bqhv", scores * self._sees(n, p), v)
        scores = self.scores(q, k, n, p)
        if self.attention == "hard":
            best = (scores == scores.amax(-1, keepdim=True)).to(v.dtype)
            weights = best / best.sum(-1, keepdim=True)
        else:
            weights = torch.softmax(scores, -1)
        return torch.einsum("bhqs,bshv->bqhv", weights, v)

    def scores(self, q: Tensor, k: Tensor, n: int, p: int) -> Tensor:
        """(batch, head, virtual query, virtual key), scaled, minus infinity where a key is not seen."""
        scores = torch.einsum("bqhk,bshk->bhqs", q, k) * (q.shape[-1] ** -0.5 if self.scale is None else self.scale)
        return scores.masked_fill(~self._sees(n, p), -torch.inf)

    def _sees(self, n: int, p: int) -> Tensor:
        """(virtual query, virtual key), interleaved: which key a query sees."""
        token, pseudo = torch.arange(n).repeat_interleave(p), torch.arange(p).repeat(n)
        earlier = token[:, None] - token
        if self.mask == "none":
            sees = torch.ones(n * p, n * p, dtype=torch.bool)
        elif self.mask == "stacked":
            position = pseudo * n + token
            sees = position[:, None] >= position
        else:
            sees = (earlier > 0) | (earlier == 0) & ((self.mask == "token") | (pseudo[:, None] >= pseudo))
        if self.window is not None:
            sees = sees & (earlier < self.window)
        if self.alone:
            sees = sees & (pseudo[:, None] == pseudo)
        return sees


def _mixed(base: Tensor, alpha: Tensor) -> Tensor:
    """(batch, token, source, width) to (batch, token pseudo, head, width), interleaved."""
    return torch.einsum("bnmw,mhj->bnjhw", base, alpha).flatten(1, 2)


def copies(alpha: Tensor) -> Tensor:
    """The mixing that leaves every head as it is, in the shape of ``alpha``."""
    heads, _, pseudo = alpha.shape
    return torch.eye(heads, dtype=alpha.dtype)[:, :, None].expand(heads, heads, pseudo)


def _reordered(t: Tensor) -> Tensor:
    """(a, head, pseudo) whose flat index h P + j is read as j H + h."""
    first, heads, pseudo = t.shape
    return t.reshape(first, pseudo, heads).transpose(1, 2)


def _fused(w: Weights, pseudo: Callable[[Tensor], Tensor], r: Callable[[Tensor], Tensor]) -> Weights:
    return w._replace(alpha_q=pseudo(w.alpha_q), alpha_k=pseudo(w.alpha_k), alpha_v=pseudo(w.alpha_v),
                      collapse=r(w.collapse))


def _mean(t: Tensor) -> Tensor:
    return t.mean(-1, keepdim=True)


def _sum(t: Tensor) -> Tensor:
    return t.sum(-1, keepdim=True)


def _first(t: Tensor) -> Tensor:
    return t[..., :1]


def _picked(w: Weights, index: int | None) -> Weights:
    """R replaced: head o is its own pseudo-head ``index``, or the mean of its pseudo-heads."""
    one = torch.eye(w.heads, dtype=w.collapse.dtype)
    collapse = torch.zeros_like(w.collapse)
    if index is None:
        collapse += one[:, :, None] / w.pseudo
    else:
        collapse[:, :, index] = one
    return w._replace(collapse=collapse)


def _own_heads(w: Weights) -> Weights:
    return w._replace(collapse=w.collapse * torch.eye(w.heads, dtype=w.collapse.dtype)[:, :, None])




#: A variant: what it does, and the fields of :class:`Formula` that it sets. Fields "scale" are factors of the scale.
Variant = tuple[str, dict[str, Any]]


def variants(formula: Formula, weights: Weights) -> list[Variant]:
    """Known departures from Algorithm 1, one at a time; those that change nothing at this size are left out."""
    key, pseudo, model = weights.q.shape[2], weights.pseudo, weights.q.shape[1]

    def edit(change: Callable[[Weights], Weights]) -> dict[str, Any]:
        return {"edit": change}

    normal = formula.scale if formula.scale is not None else key**-0.5 if formula.attention == "softmax" else 1.0
    found: list[Variant] = [
        ("scores are not scaled", {"scale": 1.0}),
        ("scores are scaled twice, by 1 / d_k", {"scale": 1 / key}),
        ("scores are scaled by 1 / sqrt(d_k)", {"scale": key**-0.5}),
        ("scores are scaled by 1 / sqrt(D)", {"scale": model**-0.5}),
        ("heads are split by a reshape without its transpose", {"reshaped": "in"}),
        ("heads are joined by a reshape without its transpose", {"reshaped": "out"}),
        ("heads are split and joined by reshapes without their transposes", {"reshaped": "both"}),
        ("values are not mixed", edit(lambda w: w._replace(alpha_v=copies(w.alpha_v)))),
        ("keys are not mixed", edit(lambda w: w._replace(alpha_k=copies(w.alpha_k)))),
        ("queries are not mixed", edit(lambda w: w._replace(alpha_q=copies(w.alpha_q)))),
        ("alpha is applied transposed, [head, source]", edit(lambda w: w._replace(
            alpha_q=w.alpha_q.transpose(0, 1), alpha_k=w.alpha_k.transpose(0, 1), alpha_v=w.alpha_v.transpose(0, 1)))),
        ("alpha^Q and alpha^K are exchanged", edit(lambda w: w if w.alpha_q.shape != w.alpha_k.shape else w._replace(
            alpha_q=w.alpha_k, alpha_k=w.alpha_q))),
        ("alpha goes through a softmax over its sources", edit(lambda w: w._replace(
            alpha_q=w.alpha_q.softmax(0), alpha_k=w.alpha_k.softmax(0), alpha_v=w.alpha_v.softmax(0)))),
        ("the biases are added after mixing", {"bias_after": True}),
        ("R is applied transposed, [head, out]", edit(lambda w: w._replace(collapse=w.collapse.transpose(0, 1)))),
        ("R joins the pseudo-heads of its own head only", edit(_own_heads)),
    ]
    for mask, says in (("none", "no mask"), ("token", "the token-causal mask"), ("flat", "the flat causal mask"),
                       ("stacked", "a causal mask over pseudo-tokens stacked pseudo-major")):
        if mask != formula.mask:
            found.append((f"it has {says}", {"mask": mask}))
    for rope, says in ((None, "no rotary positions"), ("token", "one rotary position for each token"),
                       ("virtual", "rotary positions n P + j of virtual tokens")):
        if rope != formula.rope and formula.rope is not None:
            found.append((f"it has {says}", {"rope": rope}))
    if pseudo > 1:
        found += [
            ("each pseudo-query attends to the pseudo-keys of its own index only", {"alone": True}),
            ("R is ignored: the pseudo-heads of a head are averaged", edit(lambda w: _picked(w, None))),
            ("R is ignored: the first pseudo-head is taken", edit(lambda w: _picked(w, 0))),
            ("R is ignored: the last pseudo-head is taken", edit(lambda w: _picked(w, w.pseudo - 1))),
            ("R reads its columns pseudo-major, j H + h",
             edit(lambda w: w._replace(collapse=_reordered(w.collapse)))),
            ("heads are grouped modulo: pseudo-head h P + j is read as j H + h", edit(lambda w: w._replace(
                alpha_q=_reordered(w.alpha_q), alpha_k=_reordered(w.alpha_k), alpha_v=_reordered(w.alpha_v)))),
            ("the mixing is folded into the projections, which is multi-head attention (the mean of the pseudo-heads)",
             edit(lambda w: _fused(w, _mean, _sum))),
            ("the mixing is folded into the projections, which is multi-head attention (the sum of the pseudo-heads)",
             edit(lambda w: _fused(w, _sum, _mean))),
            ("the mixing is folded into the projections, which is multi-head attention (the first pseudo-head)",
             edit(lambda w: _fused(w, _first, _first))),
        ]
    return [(says, fields) for says, fields in found if fields.get("scale") != normal]


def applied(formula: Formula, *chosen: Variant) -> Formula:
    """The formula with variants; edits of the weights follow one another."""
    result = formula
    for _, changed in chosen:
        fields = dict(changed)
        before, after = result.edit, fields.get("edit")
        if before is not None and after is not None:
            fields["edit"] = lambda w, f=before, g=after: g(f(w))
        result = replace(result, **fields)
    return result


def gap(found: Tensor, wanted: Tensor) -> float:
    """The largest difference relative to the largest entry of what is wanted."""
    if found.shape != wanted.shape:
        return float("inf")
    return float((found - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30))


def recognised(formula: Formula, weights: Weights, x: Tensor, y: Tensor, tolerance: float) -> tuple[str, float]:
    """Which variants make the formula give y: (their names joined, or "", the smallest gap of any)."""
    known = variants(formula, weights)
    nearest = float("inf")
    for size in (1, 2):
        for chosen in combinations(known, size):
            if size == 2 and set(chosen[0][1]) & set(chosen[1][1]) - {"edit"}:
                continue
            apart = gap(applied(formula, *chosen)(weights, x), y)
            if apart <= tolerance:
                return " and ".join(says for says, _ in chosen), apart
            nearest = min(nearest, apart)
    return "", nearest
