"""Whether masked tokens stay unseen, and whether a decoder's cache holds what one pass sees."""

from __future__ import annotations

import torch

from iha_theory.conformance.judgement import Judgement, not_applicable, same, widest
from iha_theory.conformance.subject import Subject, shape_of, trained, tried_on


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
    if not torch.isfinite(y).all():
        rows = sorted(set((~torch.isfinite(y)).nonzero()[:, 1].tolist()))
        return Judgement(False, f"the outputs of tokens {rows} are not finite, which the next layer spreads",
                         tried_on(subject))
    y = y[:, 3:] if left else y[:, : subject.tokens]
    side = "before" if left else "behind"
    return same(y, real, subject.tolerance, tried_on(subject), f"real tokens with and without 3 pads {side} them agree")


def dead_rows(subject: Subject) -> Judgement:
    """A sequence of pads only gives zeros through the output projection, and finite gradients."""
    if not subject.takes_padding:
        return not_applicable("padding cannot be passed")
    module, case = subject.randomised(), f"{shape_of(subject)}, one sequence all padding"
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
            grads = subject.gradients(y, [x, *trained(module)])
            if not all(torch.isfinite(g).all() for g in grads if g is not None):
                return Judgement(False, "the output is finite, and gradients are not", case)
    apart = (outputs[0] - outputs[1]).abs().max()
    if float(apart) > subject.tolerance * max(1.0, float(outputs[0].abs().max())):
        return Judgement(False, "the output depends on tokens that are masked", case, widest(outputs[0], outputs[1]))
    if subject.adapter.white_box:
        weights = subject.weights(module)
        bias = torch.zeros(outputs[0].shape[1], dtype=torch.float64) if weights.out_bias is None else weights.out_bias
        return same(outputs[0], bias.expand_as(outputs[0]).clone() + 0.0, subject.tolerance, case,
                    "finite, the same whatever the masked tokens are, and the output projection of zeros",
                    least=1.0)
    return Judgement(True, "finite, and the same whatever the masked tokens are", case)


def decoding(subject: Subject) -> Judgement:
    """Token by token through the cache gives what one full pass gives."""
    if subject.adapter.decode is None:
        return not_applicable("no way to decode is named")
    if subject.kind == "none":
        return not_applicable("the layer is not causal")
    module, x = subject.randomised(), subject.input()
    return same(subject.decoded(module, x), subject.output(module, x), subject.tolerance, tried_on(subject),
                "token by token and in one pass agree")
