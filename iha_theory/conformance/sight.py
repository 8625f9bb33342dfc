"""What a token sees, of a layer that is only called: its mask, the order of tokens, and whether repeated tokens tell it from
multi-head attention."""

from __future__ import annotations

import torch
from torch import Tensor

from iha_theory.claims import Witness
from iha_theory.conformance.judgement import Judgement, not_applicable, relative, same, widest
from iha_theory.conformance.subject import CHANGES, DRAWS, LayerError, Subject, shape_of, tried_on

#: Tokens of a long sequence.
MANY = 64


def repeated_tokens(subject: Subject) -> Judgement:
    """Whether x -> f(1 x^T) is affine: as multi-head attention is, and an IHA layer with P >= 2 is not."""
    adapter = subject.adapter
    if adapter.attention == "linear":
        return not_applicable("linear attention is of degree 3 on repeated tokens, with one pseudo-head too")
    if adapter.positions:
        return not_applicable("the layer adds positions, so that its rows differ")
    apart, place = 0.0, None
    for draw in range(DRAWS):
        module = subject.randomised(draw)
        for start in (0, 2):
            a, b = (2 * subject.normal(2, 1, subject.features, draw=10 * draw + start + i).expand(-1, subject.tokens, -1)
                    for i in (0, 1))
            f_a, f_b, middle = (subject.output(module, x) for x in (a, b, (a + b) / 2))
            gap = relative(middle, (f_a + f_b) / 2)
            if gap > apart:
                apart, place = gap, widest(middle, (f_a + f_b) / 2)
    subject.is_affine = apart <= subject.tolerance
    case = f"{shape_of(subject)}, x repeated, {DRAWS} draws of the parameters"
    if not subject.is_module:
        case = f"{shape_of(subject)}, x repeated"
    found = f"f((a + b) / 2) parts from (f(a) + f(b)) / 2 by {apart:.1e}"
    wants_affine = adapter.claims == "mha" or subject.pseudo == 1
    if subject.is_affine:
        return Judgement(wants_affine, f"affine: {found}", case)
    return Judgement(not wants_affine, f"not affine: {found}", case, place)


def causality(subject: Subject) -> Judgement:
    """Which outputs change when one token changes: all, or the later ones; token against flat by repeated tokens."""
    adapter, n = subject.adapter, subject.tokens
    changed = torch.zeros(n, n, dtype=torch.bool)
    draws = 32 if adapter.attention == "hard" else DRAWS
    for draw in range(draws):
        module, x = subject.randomised(draw), subject.input(draw=draw)
        base = subject.output(module, x)
        for t in range(n):
            other = x.clone()
            other[:, t] = 2 * subject.normal(2, subject.features, draw=100 + t + n * draw)
            apart = (subject.output(module, other) - base).abs().amax((0, 2))
            changed[t] |= apart > CHANGES[subject.dtype] * base.abs().max()
    t, later = torch.arange(n)[:, None], torch.arange(n)
    within = torch.ones(n, n, dtype=torch.bool) if adapter.window is None else later - t < adapter.window
    longer = _long(subject)
    if longer is not None:
        return longer
    case = f"{shape_of(subject)}, every token changed, {draws} draws of the parameters"
    if (changed == within).all() and adapter.window is None:
        found, kind = "every output depends on every token", "none"
    elif (changed == (within & (later >= t))).all():
        found, kind = _token_or_flat(subject)
    else:
        return _leak(subject, changed, within, case)
    subject.kind = adapter.mask or ("token" if kind == "causal" else kind)
    good = adapter.mask in (None, kind) or (kind == "causal" and adapter.mask in ("token", "flat"))
    if good:
        return Judgement(True, found, case)
    return Judgement(False, f"{found}; the adapter says mask={adapter.mask!r}", case, _first(changed, adapter.mask))


def _long(subject: Subject) -> Judgement | None:
    """What is wrong in a sequence of many tokens, whose last but one changes: a mask may be of a fixed size."""
    adapter = subject.adapter
    if adapter.mask == "none" or (adapter.mask is None and adapter.attention == "hard"):
        return None
    n = MANY if adapter.tokens is None else min(MANY, adapter.tokens)
    module, x = subject.randomised(), subject.input(tokens=n, draw=41)
    try:
        base = subject.output(module, x)
    except LayerError as error:
        if adapter.tokens is None:
            return Judgement(False, f"with {n} tokens it {error}; if it takes no more than T, say Adapter(tokens=T)",
                             f"D={subject.features}, N={n}")
        raise
    other = x.clone()
    other[:, n - 2] = 2 * subject.normal(2, subject.features, draw=42)
    changed = (subject.output(module, other) - base).abs().amax((0, 2)) > CHANGES[subject.dtype] * base.abs().max()
    short = subject.output(module, x[:, : n - 2])
    causal = relative(base[:, : n - 2], short) <= subject.tolerance
    few = x[:, : subject.tokens].clone()
    early = subject.output(module, few)
    few[:, -1] = 2 * subject.normal(2, subject.features, draw=43)
    apart = (subject.output(module, few) - early).abs().amax((0, 2))[:-1]
    is_causal = bool((apart <= CHANGES[subject.dtype] * early.abs().max()).all())
    if is_causal and (not causal or bool(changed[: n - 2].any())):
        reader = int(changed.int().argmax())
        return Judgement(False, f"causal with {subject.tokens} tokens, and not with {n}: the output of token {reader} "
                         f"depends on a later one", f"D={subject.features}, N={n}",
                         Witness((reader, n - 2), "depends", "does not depend"))
    return None


def _token_or_flat(subject: Subject) -> tuple[str, str]:
    """What a causal layer's rows do on repeated tokens: (in words, "token", "flat", or "causal" for either)."""
    if subject.adapter.rope or subject.adapter.positions:
        return "causal; its positions hide whether token or flat", "causal"
    if subject.adapter.attention == "linear":
        return "causal; sums grow along the rows, which hides whether token or flat", "causal"
    if subject.adapter.window == 1:
        return "causal; a window of one token hides whether token or flat", "causal"
    apart = 0.0
    for draw in range(DRAWS):
        x = 2 * subject.normal(2, 1, subject.features, draw=draw).expand(-1, subject.tokens, -1)
        y = subject.output(subject.randomised(draw), x)
        apart = max(apart, relative(y, y[:, -1:].expand_as(y)))
    if apart > subject.tolerance:
        return f"causal, flat: on repeated tokens its rows part by {apart:.1e}", "flat"
    if subject.is_affine or subject.is_affine is None:
        return "causal; token and flat are one on repeated tokens here", "causal"
    return f"causal, token: on repeated tokens its rows agree within {apart:.1e}", "token"


def _leak(subject: Subject, changed: Tensor, within: Tensor, case: str) -> Judgement:
    """The layer is neither without a mask nor causal."""
    n, adapter = subject.tokens, subject.adapter
    t, later = torch.arange(n)[:, None], torch.arange(n)
    subject.kind = adapter.mask or "none"
    wanted = within if adapter.mask == "none" else within & (later >= t)
    wrong = (changed != wanted).nonzero()
    # A change that comes too early is the graver fault.
    early = (changed & (later < t)).nonzero()
    source, reader = (early if len(early) else wrong)[0].tolist()
    does = "depends" if changed[source, reader] else "does not depend"
    return Judgement(False, f"the output of token {reader} {does} on token {source}, and it is neither causal nor "
                     f"without a mask ({int(changed.sum())} of {n * n} pairs depend)", case,
                     Witness((reader, source), does, "depends" if wanted[source, reader] else "does not depend"))


def _first(changed: Tensor, mask: str | None) -> Witness | None:
    """A pair (reader, source) that contradicts the mask that was said, if one does."""
    n = len(changed)
    t, later = torch.arange(n)[:, None], torch.arange(n)
    wanted = torch.ones_like(changed) if mask == "none" else later >= t
    wrong = (changed != wanted).nonzero()
    if not len(wrong):
        return None
    source, reader = wrong[0].tolist()
    words = {True: "depends", False: "does not depend"}
    return Witness((reader, source), words[bool(changed[source, reader])], words[bool(wanted[source, reader])])


def permutation(subject: Subject) -> Judgement:
    """Without a mask f(pi X) = pi f(X); under a causal one the last token does not heed the order of the others."""
    adapter = subject.adapter
    if adapter.positions or adapter.rope:
        return not_applicable("the layer has positions")
    if adapter.window is not None:
        return not_applicable("the layer has a window")
    module, x = subject.randomised(), subject.input()
    order = torch.randperm(subject.tokens - 1, generator=subject.generator(5))
    if subject.kind == "none":
        order = torch.randperm(subject.tokens, generator=subject.generator(5))
        while bool((order == torch.arange(subject.tokens)).all()):
            order = order.roll(1)
        return same(subject.output(module, x[:, order]), subject.output(module, x)[:, order], subject.tolerance,
                    tried_on(subject), "f(pi X) and pi f(X) agree")
    if bool((order == torch.arange(len(order))).all()):
        order = order.roll(1)
    moved = torch.cat((x[:, order], x[:, -1:]), 1)
    return same(subject.output(module, moved)[:, -1], subject.output(module, x)[:, -1], subject.tolerance,
                tried_on(subject), "the last output before and after earlier tokens are permuted agree")
