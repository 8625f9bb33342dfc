"""What can be asked of a layer whose weights are named: the formula, the start, what can separate, and the count."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn

from iha_theory.conformance.adapter import Adapter, attribute
from iha_theory.conformance.formula import Formula, copies, gap, recognised
from iha_theory.conformance.judgement import Judgement, not_applicable, relative, same, widest
from iha_theory.conformance.subject import Subject
from iha_theory.conformance.weights import Weights

#: What counts as the rounding of float64.
ROUNDING = 1e-9
STEPS = 6
#: Factor of the weights at which large scores are tried.
LARGE = 3.0


def formula_of(subject: Subject) -> Formula:
    """Algorithm 1 with what the adapter says, and the mask that was said or found."""
    adapter = subject.adapter
    return Formula(mask=subject.kind or "none", window=adapter.window, attention=adapter.attention, rope=adapter.rope,
                   rope_base=adapter.rope_base, scale=adapter.scale)


def algorithm_1(subject: Subject) -> Judgement:
    """The layer equals Algorithm 1 with its own weights, at random ones; if not, which known variant it is."""
    module, x = subject.randomised(), subject.input()
    weights, y = subject.weights(module), subject.output(module, x)
    formula, case = formula_of(subject), f"{_case(subject, weights)}, random parameters"
    masks = (formula,) if subject.adapter.mask or formula.mask == "none" else (formula, replace(formula, mask="flat"))
    wanted = [each(weights, x.double()) for each in masks]
    formula, expected = min(zip(masks, wanted, strict=True), key=lambda pair: gap(y, pair[1]))
    if expected.shape != y.shape:
        return Judgement(False, f"the formula with these weights gives {tuple(expected.shape)}, the layer "
                         f"{tuple(y.shape)}", case)
    apart = relative(y, expected)
    if apart <= ROUNDING:
        # Larger weights, larger scores: what is clamped shows.
        module = subject.randomised(1, gain=LARGE)
        larger = relative(subject.output(module, x), formula(subject.weights(module), x.double()))
        if larger > subject.tolerance:
            return Judgement(False, f"equal within {apart:.1e}, and with weights {LARGE:g} times as large it parts by "
                             f"{larger:.1e}: are scores clamped?", case)
    if apart <= subject.tolerance:
        rounding = "" if apart <= ROUNDING else ": something inside computes in single precision"
        return Judgement(True, f"equal within {apart:.1e}{rounding}", case)
    says, nearest = recognised(formula, weights, x.double(), y, subject.tolerance)
    if says:
        return Judgement(False, f"parts by {apart:.1e}; it is Algorithm 1 but that {says} (equal within {nearest:.1e})",
                         case, widest(y, expected))
    return Judgement(False, f"parts by {apart:.1e}; none of the known variants and no two of them explain it "
                     f"(nearest {nearest:.1e})", case, widest(y, expected))


def start(subject: Subject) -> Judgement:
    """As given, the layer is multi-head attention with its own projections; if not, what correction would do it."""
    if not subject.adapter.starts_as_mha:
        return not_applicable("the layer does not promise to start as multi-head attention")
    module, x = subject.given(), subject.input()
    weights, y = subject.weights(module), subject.output(module, x)
    plain, formula = as_mha(weights), as_mha_formula(formula_of(subject))
    expected, case = formula(plain, x.double()), f"{_case(subject, weights)}, as given"
    if expected.shape != y.shape:
        return Judgement(False, f"multi-head attention with these projections gives {tuple(expected.shape)}", case)
    found = same(y, expected, subject.tolerance, case, "the layer and multi-head attention agree")
    if found.good:
        return found
    return replace(found, found=f"{found.found}{_correction(subject, weights, plain, x.double(), y)}")


def as_mha(weights: Weights) -> Weights:
    """The same projections without mixing."""
    one, kv = (copies(a[..., :1]) for a in (weights.alpha_q, weights.alpha_k))
    return weights._replace(alpha_q=one, alpha_k=kv, alpha_v=kv, collapse=one)


def as_mha_formula(formula: Formula) -> Formula:
    """The mask on tokens, and one rotary position for each."""
    return replace(formula, mask="none" if formula.mask == "none" else "token", rope=formula.rope and "token")


def _correction(subject: Subject, weights: Weights, plain: Weights, x: Tensor, y: Tensor) -> str:
    """Which change of multi-head attention's logits gives the layer's output, in words."""
    p, formula = weights.pseudo, as_mha_formula(formula_of(subject))
    if formula.mask == "token":
        biased = [_with_diagonal_bias(formula, plain, x, math.log(picked / p)) for picked in range(1, p)]
        for picked, output in enumerate(biased, 1):
            if gap(output, y) <= subject.tolerance:
                return (f"; it is multi-head attention with log({picked}/{p}) added to the diagonal logits: R picks "
                        f"pseudo-head {picked} of {p} (counted from 1) under the flat mask; let it pick the last")
        if p > 1:
            mean = (torch.stack(biased).sum(0) + formula(plain, x)) / p
            if gap(mean, y) <= subject.tolerance:
                return ("; it is the mean of multi-head attentions with log(J/P) added to the diagonal logits, J = 1 to "
                        "P: R averages the pseudo-heads under the flat mask; let it pick the last")
    for zeros in range(1, p):
        if gap(_with_zero_keys(formula, plain, x, zeros, p - zeros), y) <= subject.tolerance:
            return (f"; it is multi-head attention with {zeros} more keys of score 0 and value 0 for every "
                    f"{p - zeros} of its own: pseudo-heads switched off with zeros stay in the softmax; copy the base "
                    "heads instead")
    own = formula_of(subject)
    if own.rope == "virtual" and gap(own(weights, x), y) <= subject.tolerance:
        return "; the copies of a key sit at different rotary positions; give all pseudo-tokens of a token one position"
    if gap(own(weights, x), y) <= subject.tolerance:
        return "; it is Algorithm 1 with its weights, so the weights do not start at multi-head attention"
    says, _ = recognised(own, weights, x, y, subject.tolerance)
    return f"; it is Algorithm 1 but that {says}" if says else ""


def _with_diagonal_bias(formula: Formula, plain: Weights, x: Tensor, bias: float) -> Tensor:
    """Multi-head attention with ``bias`` added to the logit of a token on itself."""
    q, k, v = formula.pseudo(plain, x)
    n = x.shape[1]
    weights = torch.softmax(formula.scores(q, k, n, 1) + bias * torch.eye(n, dtype=q.dtype), -1)
    return formula.finished(plain, torch.einsum("bhqs,bshv->bqhv", weights, v))


def _with_zero_keys(formula: Formula, plain: Weights, x: Tensor, zeros: int, own: int) -> Tensor:
    """Multi-head attention with ``zeros`` keys of score 0 and value 0 for every ``own`` of a seen key."""
    q, k, v = formula.pseudo(plain, x)
    n = x.shape[1]
    scores = formula.scores(q, k, n, 1)
    more = torch.where(torch.isinf(scores), scores, torch.zeros_like(scores)) + math.log(zeros / own)
    weights = torch.softmax(torch.cat((scores, more), -1), -1)[..., :n]
    return formula.finished(plain, torch.einsum("bhqs,bshv->bqhv", weights, v))


def separation(subject: Subject) -> Judgement:
    """After a few gradient steps no two pseudo-heads have the same keys and the same values in every head."""
    module = subject.given(torch.float64) if subject.dtype == torch.float64 else subject.given()
    weights = subject.adapter.read(module)
    p = weights.pseudo
    if p == 1:
        return not_applicable("P = 1")
    trained = [q for q in module.parameters() if q.requires_grad]
    if not trained:
        return not_applicable("no parameter is trained")
    for step in range(STEPS):
        x = subject.input(batch=4, draw=200 + step)
        y = subject.run(module, x)
        loss = (y - subject.normal(*y.shape, draw=300 + step)).square().mean()
        grads = subject.gradients(loss, trained)
        size = max((float(g.abs().max()) for g in grads if g is not None), default=0.0)
        if not 0 < size < float("inf"):
            return Judgement(False, "the gradients are zero or not finite", _case(subject, weights))
        with torch.no_grad():
            for parameter, g in zip(trained, grads, strict=True):
                if g is not None:
                    parameter -= 0.1 / size * g
    after = subject.weights(module)
    tied = [(i, j) for i in range(p) for j in range(i + 1, p)
            if _spread(after.alpha_k, i, j) <= ROUNDING and _spread(after.alpha_v, i, j) <= ROUNDING]
    case = f"{_case(subject, after)}, {STEPS} gradient steps on a random regression"
    apart = max(_spread(a, i, j) for a in (after.alpha_k, after.alpha_v) for i in range(p) for j in range(i + 1, p))
    if tied:
        pairs = ", ".join(f"{i + 1} and {j + 1}" for i, j in tied[:6]) + (", ..." if len(tied) > 6 else "")
        return Judgement(False, f"pseudo-heads {pairs} (counted from 1) keep the same keys and values", case)
    return Judgement(True, f"pseudo-keys and -values differ by up to {apart:.1e} of the largest", case)


def _spread(alpha: Tensor, i: int, j: int) -> float:
    """How far two pseudo-heads' mixing is apart, relative to the largest entry."""
    return float((alpha[..., i] - alpha[..., j]).abs().max() / alpha.abs().max().clamp_min(1e-30))


def operators(subject: Subject) -> Judgement:
    """Linear attention: how many independent operators the layer applies to its values; multi-head attention: H."""
    adapter = subject.adapter
    if adapter.attention != "linear":
        return not_applicable("only linear attention applies operators that do not depend on its values")
    module = subject.randomised()
    weights = subject.weights(module)
    if weights.pseudo == 1 or weights.heads == 1:
        return not_applicable("P = 1" if weights.pseudo == 1 else "H = 1, and all operators are in the span of one")
    half = subject.features // 2
    # As many pairs of tokens as show more operators than H.
    n = max(subject.tokens, isqrt(weights.heads) + 4)
    if subject.adapter.tokens is not None:
        n = min(n, subject.adapter.tokens)
    named = [_parameter(adapter, module, name) for name in ("q", "k", "v")]
    if any(parameter is None for parameter in named) or adapter.projection.split()[-1] != "model" or half < 1:
        return not_applicable("the projections are not named as tensors whose last axis is the model's")
    # Queries and keys read the first half of the features, values the second: then the output is linear in that half.
    with torch.no_grad():
        for parameter, unread in zip(named, (slice(half, None), slice(half, None), slice(half)), strict=True):
            if parameter is not None:
                parameter[..., unread] = 0
    rest = subject.features - half
    fixed = subject.normal(1, n, half, draw=11)
    units = torch.eye(n * rest, dtype=subject.dtype).view(n * rest, n, rest)
    x = torch.cat((fixed.expand(n * rest, -1, -1), units), -1)
    zero = torch.cat((fixed, torch.zeros(1, n, rest, dtype=subject.dtype)), -1)
    response = _in_pieces(lambda piece: subject.output(module, piece) - subject.output(module, zero), x)
    read, formula = subject.weights(module), formula_of(subject)
    expected = _in_pieces(lambda piece: formula(read, piece.double()) - formula(read, zero.double()), x)
    rank, wanted = (_rank(t.view(n, rest, n, -1)) for t in (response, expected))
    case = f"D={subject.features}, H={weights.heads}, P={weights.pseudo}, N={n}, random parameters"
    found = f"{rank} independent operators, H = {weights.heads}, Algorithm 1 with these weights has {wanted}"
    return Judgement(rank > weights.heads and rank >= wanted, found, case)


def _in_pieces(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Of a large batch, 64 sequences at a time."""
    return torch.cat([function(piece) for piece in x.split(64)])


def _rank(response: Tensor) -> int:
    """Of (source, feature, reader, output) read as (reader, source) against (feature, output)."""
    n = response.shape[0]
    values = torch.linalg.svdvals(response.permute(2, 0, 1, 3).reshape(n * n, -1))
    return int((values > 1e-7 * values[0]).sum())


def _parameter(adapter: Adapter, module: Any, name: str) -> Tensor | None:
    place = getattr(adapter, name)
    if adapter.weights is not None or not isinstance(place, str):
        return None
    found = attribute(module, place, name)
    return found.weight if isinstance(found, nn.Linear) else found


def parameters(subject: Subject) -> Judgement:
    """The layer has the parameters that its formula has: Q + 4 H^2 P, or Q for multi-head attention."""
    if not subject.is_module:
        return not_applicable("a callable has no parameters")
    module = subject.given()
    weights = subject.weights(module)
    mixing = 0 if subject.adapter.claims == "mha" else weights.mixing
    wanted, found = weights.projections + mixing, sum(q.numel() for q in module.parameters())
    says = f"{found} against Q + mixing = {weights.projections} + {mixing}"
    if found == wanted:
        return Judgement(True, says, _case(subject, weights))
    sizes = ", ".join(f"{name} {q.numel()}" for name, q in module.named_parameters())
    return Judgement(False, f"{says}: {found - wanted:+d}; it has {sizes}", _case(subject, weights))


def _case(subject: Subject, weights: Weights) -> str:
    return f"D={subject.features}, H={weights.heads}, P={weights.pseudo}, N={subject.tokens}"


