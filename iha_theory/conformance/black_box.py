"""What can be asked of a layer that is only called: no adapter is needed, though what it says of the layer is heeded."""

from __future__ import annotations

import torch
from torch import Tensor

from iha_theory.claims import Witness
from iha_theory.conformance.judgement import Judgement, not_applicable, relative, same, widest
from iha_theory.conformance.subject import CHANGES, LayerError, Subject, told

#: Random parameters are drawn this often where one draw could be unlucky.
DRAWS = 4


def runs(subject: Subject) -> Judgement:
    """A finite output of the input's shape, as given and at random parameters; finds the dtype to work in."""
    case = f"{_shape(subject)}, as given and at random parameters"
    try:
        y = subject.output(subject.given(), subject.input())
    except LayerError as error:
        subject.dtype = torch.float32
        try:
            y = subject.output(subject.given(), subject.input())
        except LayerError:
            subject.dtype = torch.float64
            return Judgement(False, str(error), case)
    try:
        subject.output(subject.randomised(), subject.input())
    except LayerError as error:
        return Judgement(False, f"{error} (at random parameters)", case)
    return Judgement(True, f"{tuple(y.shape)}, finite, in {_name(subject.dtype)}", case)


def deterministic(subject: Subject) -> Judgement:
    """Two calls in eval mode give the same."""
    module, x = subject.randomised(), subject.input()
    first, second = subject.output(module, x), subject.output(module, x)
    return same(second, first, CHANGES[subject.dtype], _random(subject), "two calls in eval mode agree")


def batch(subject: Subject) -> Judgement:
    """A sequence gives the same alone and among others."""
    module, x = subject.randomised(), subject.input(batch=3)
    together = subject.output(module, x)
    alone = torch.cat([subject.output(module, one) for one in x.split(1)])
    return same(together, alone, subject.tolerance, _random(subject), "a sequence in a batch and alone agree")


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
    case = f"{_shape(subject)}, x repeated, {DRAWS} draws of the parameters"
    if not subject.is_module:
        case = f"{_shape(subject)}, x repeated"
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
    case = f"{_shape(subject)}, every token changed, {draws} draws of the parameters"
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
                    _random(subject), "f(pi X) and pi f(X) agree")
    if bool((order == torch.arange(len(order))).all()):
        order = order.roll(1)
    moved = torch.cat((x[:, order], x[:, -1:]), 1)
    return same(subject.output(module, moved)[:, -1], subject.output(module, x)[:, -1], subject.tolerance,
                _random(subject), "the last output before and after earlier tokens are permuted agree")


def right_padding(subject: Subject) -> Judgement:
    """Real tokens give the same with masked tokens behind them."""
    return _padded(subject, left=False)


def left_padding(subject: Subject) -> Judgement:
    """Real tokens give the same with masked tokens before them."""
    if subject.adapter.positions:
        return not_applicable("the layer adds positions, which padding shifts")
    return _padded(subject, left=True)


def _padded(subject: Subject, *, left: bool) -> Judgement:
    if not subject.takes_padding:
        return not_applicable("padding cannot be passed")
    module, x, pads = subject.randomised(), subject.input(), 10 * subject.normal(2, 3, subject.features, draw=7)
    real = subject.output(module, x)
    mask = torch.zeros(2, subject.tokens + 3, dtype=torch.bool)
    if left:
        longer = torch.cat((pads, x), 1)
        mask[:, :3] = True
    else:
        longer = torch.cat((x, pads), 1)
        mask[:, subject.tokens :] = True
    with torch.no_grad():
        y = subject.run(module, longer, mask).double()
    y = y[:, 3:] if left else y[:, : subject.tokens]
    side = "before" if left else "behind"
    return same(y, real, subject.tolerance, _random(subject), f"real tokens with and without 3 pads {side} them agree")


def dead_rows(subject: Subject) -> Judgement:
    """A sequence of pads only gives zeros through the output projection, and finite gradients."""
    if not subject.takes_padding:
        return not_applicable("padding cannot be passed")
    module, case = subject.randomised(), f"{_shape(subject)}, one sequence all padding"
    mask = torch.zeros(2, subject.tokens, dtype=torch.bool)
    mask[0] = True
    outputs = []
    for draw in (0, 1):
        x = subject.input(draw=draw).requires_grad_()
        y = subject.run(module, x, mask)
        outputs.append(y[0].detach().double())
        with torch.no_grad():
            # Some layers take another path in inference.
            silent = subject.run(module, x.detach(), mask)
        for way, t in (("", y), (" without gradients", silent)):
            if not torch.isfinite(t).all():
                return Judgement(False, f"{int((~torch.isfinite(t)).sum())} entries are not finite{way}", case)
        if y.requires_grad:
            grads = torch.autograd.grad(y.sum(), [x, *_trained(module)], allow_unused=True)
            if not all(torch.isfinite(g).all() for g in grads if g is not None):
                return Judgement(False, "the output is finite, and gradients are not", case)
    apart = (outputs[0] - outputs[1]).abs().max()
    if float(apart) > subject.tolerance * max(1.0, float(outputs[0].abs().max())):
        return Judgement(False, "the output depends on tokens that are masked", case, widest(outputs[0], outputs[1]))
    return Judgement(True, "finite, and the same whatever the masked tokens are", case)


def dtypes(subject: Subject) -> Judgement:
    """float32, bfloat16 and float16 in, the same out, near the float64 answer of the same weights."""
    if subject.adapter.attention == "hard":
        return not_applicable("hard attention jumps where rounding moves a score")
    if not subject.is_module:
        return not_applicable("a callable cannot be moved to another dtype")
    seen, case = [], f"{_shape(subject)}, the best of {DRAWS} draws of small random parameters"
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        best, witness = float("inf"), None
        for draw in range(DRAWS):
            # A fault of the dtype shows in every draw; a small answer that cancels, in one.
            low, x = subject.randomised(draw, gain=0.5).to(dtype), subject.input(draw=draw).to(dtype)
            try:
                with torch.no_grad():
                    y = subject.run(low, x)
            except LayerError as error:
                return Judgement(False, f"{_name(dtype)}: {error}", case)
            if y.dtype != dtype:
                return Judgement(False, f"{_name(dtype)} in, {_name(y.dtype)} out", case)
            # The same rounded weights in the dtype of the audit: what is left is the rounding of the computation.
            exact = subject.output(low.to(subject.dtype), x.to(subject.dtype))
            apart = relative(y.double(), exact)
            if not apart >= best:
                best, witness = apart, widest(y.double(), exact)
        allowed = torch.finfo(dtype).eps ** 0.5
        if not best <= allowed:
            return Judgement(False, f"{_name(dtype)}: {best:.1e} from the answer in {_name(subject.dtype)}, allowed "
                             f"{allowed:.1e}", case, witness)
        seen.append(f"{_name(dtype)} {best:.0e}")
    return Judgement(True, f"from the answer in {_name(subject.dtype)}: {', '.join(seen)}", case)


def decoding(subject: Subject) -> Judgement:
    """Token by token through the cache gives what one full pass gives."""
    if subject.adapter.decode is None:
        return not_applicable("no way to decode is named")
    if subject.kind == "none":
        return not_applicable("the layer is not causal")
    module, x = subject.randomised(), subject.input()
    return same(subject.decoded(module, x), subject.output(module, x), subject.tolerance, _random(subject),
                "token by token and in one pass agree")


def gradients(subject: Subject) -> Judgement:
    """Finite for the input and for every parameter that wants one, and none is missing."""
    case, missing, wanted = f"{_shape(subject)}, as given and at random parameters", [], ()
    for module in (subject.given(), subject.randomised()):
        x = subject.input().requires_grad_()
        try:
            y = subject.run(module, x)
        except LayerError as error:
            return Judgement(False, f"{error} (with gradients on)", case)
        if not y.requires_grad:
            return Judgement(False, "the output has no gradient at all", case)
        names, wanted = zip(("the input", x), *((n, p) for n, p in _named(module) if p.requires_grad), strict=True)
        try:
            grads = torch.autograd.grad((y * subject.normal(*y.shape, draw=3).to(y.dtype)).sum(), wanted,
                                        allow_unused=True)
        except Exception as error:
            return Judgement(False, f"the backward pass {told(error)}", case)
        bad = [name for name, g in zip(names, grads, strict=True) if g is not None and not torch.isfinite(g).all()]
        if bad:
            return Judgement(False, f"not finite: {', '.join(bad)}", case)
        missing = [name for name, g in zip(names, grads, strict=True) if g is None]
        # Hard attention depends on its scores where it has no derivative.
        if missing and subject.adapter.attention != "hard":
            return Judgement(False, f"no gradient reaches {', '.join(missing)}", case)
    unjudged = f", none for {len(missing)} others, as may be in hard attention" if missing else ""
    return Judgement(True, f"finite, for the input and {len(wanted) - 1 - len(missing)} parameters{unjudged}", case)


def _named(module: object) -> list[tuple[str, torch.nn.Parameter]]:
    return list(module.named_parameters()) if isinstance(module, torch.nn.Module) else []


def _trained(module: object) -> list[Tensor]:
    return [p for _, p in _named(module) if p.requires_grad]


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _shape(subject: Subject) -> str:
    return f"D={subject.features}, N={subject.tokens}"


def _random(subject: Subject) -> str:
    return f"{_shape(subject)}" + (", random parameters" if subject.is_module else "")
