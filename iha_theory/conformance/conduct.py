"""How a layer behaves as a module: whether it runs, repeats itself, keeps sequences apart; its dtypes and gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from iha_theory.conformance.judgement import Judgement, not_applicable, relative, same, widest
from iha_theory.conformance.subject import (
    CHANGES,
    DRAWS,
    LayerError,
    Subject,
    cast,
    dtype_name,
    parameters_of,
    plain_call,
    shape_of,
    tried_on,
)

#: Step of difference quotients.
STEP = 1e-3


def runs(subject: Subject) -> Judgement:
    """A finite output of the input's shape, as given and at random parameters; finds the dtype to work in."""
    case = f"{shape_of(subject)}, as given and at random parameters"
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
    return Judgement(True, f"{tuple(y.shape)}, finite, in {dtype_name(subject.dtype)}", case)


def deterministic(subject: Subject) -> Judgement:
    """Two calls in eval mode give the same, and leave the input alone."""
    module, x = subject.randomised(), subject.input()
    before = x.clone()
    with torch.no_grad():
        (subject.adapter.call or plain_call)(module, x, None)
    if not torch.equal(x, before):
        return Judgement(False, "it writes into its input", tried_on(subject), widest(x, before))
    first, second = subject.output(module, x), subject.output(module, x)
    return same(second, first, CHANGES[subject.dtype], tried_on(subject), "two calls in eval mode agree")


def training(subject: Subject) -> Judgement:
    """With dropout off, the layer computes the same in training mode as in eval mode."""
    if not subject.is_module:
        return not_applicable("a callable has no modes")
    module, x = subject.randomised(), subject.input()
    expected = subject.output(module, x)
    for part in module.modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd):
            part.p = 0.0
        for name, value in vars(part).items():
            if "drop" in name and isinstance(value, float):
                setattr(part, name, 0.0)
    module.train()
    first, second = subject.output(module, x), subject.output(module, x)
    if relative(second, first) > CHANGES[subject.dtype]:
        return not_applicable("in training mode something random is on that is no attribute with 'drop' in its name")
    return same(first, expected, subject.tolerance, f"{tried_on(subject)}, dropout 0", "training and eval mode agree")


def batch(subject: Subject) -> Judgement:
    """A sequence gives the same alone and among others."""
    module, x = subject.randomised(), subject.input(batch=3)
    together = subject.output(module, x)
    alone = torch.cat([subject.output(module, one) for one in x.split(1)])
    return same(together, alone, subject.tolerance, tried_on(subject), "a sequence in a batch and alone agree")


def dtypes(subject: Subject) -> Judgement:
    """float32, bfloat16 and float16 in, the same out, near the float64 answer of the same weights."""
    if subject.adapter.attention == "hard":
        return not_applicable("hard attention jumps where rounding moves a score")
    if not subject.is_module:
        return not_applicable("a callable cannot be moved to another dtype")
    seen, case = [], f"{shape_of(subject)}, the best of {DRAWS} draws of small random parameters"
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        best, witness, broken = float("inf"), None, 0
        for draw in range(DRAWS):
            # A fault of the dtype shows in every draw; a small answer that cancels, in one.
            low, x = cast(subject.randomised(draw, gain=0.5), dtype), subject.input(draw=draw).to(dtype)
            try:
                with torch.no_grad():
                    y = subject.run(low, x)
            except LayerError as error:
                return Judgement(False, f"{dtype_name(dtype)}: {error}", case)
            if y.dtype != dtype:
                return Judgement(False, f"{dtype_name(dtype)} in, {dtype_name(y.dtype)} out", case)
            # The same rounded weights in the dtype of the audit: what is left is the rounding of the computation.
            exact = subject.output(cast(low, subject.dtype), x.to(subject.dtype))
            broken += int((~torch.isfinite(y)).sum())
            apart = relative(y.double(), exact)
            if apart < best:
                best, witness = apart, widest(y.double(), exact)
        if broken:
            return Judgement(False, f"{dtype_name(dtype)}: {broken} entries are not finite", case)
        allowed = torch.finfo(dtype).eps ** 0.5
        if not best <= allowed:
            return Judgement(False, f"{dtype_name(dtype)}: {best:.1e} from the answer in {dtype_name(subject.dtype)}, "
                             f"allowed {allowed:.1e}", case, witness)
        seen.append(f"{dtype_name(dtype)} {best:.0e}")
    return Judgement(True, f"from the answer in {dtype_name(subject.dtype)}: {', '.join(seen)}", case)


def gradients(subject: Subject) -> Judgement:
    """Finite for the input and for every parameter that wants one, and none is missing."""
    case, missing, wanted = f"{shape_of(subject)}, as given and at random parameters", [], ()
    for module in (subject.given(), subject.randomised()):
        x = subject.input().requires_grad_()
        try:
            y = subject.run(module, x)
        except LayerError as error:
            return Judgement(False, f"{error} (with gradients on)", case)
        if not y.requires_grad:
            return Judgement(False, "the output has no gradient at all", case)
        names, wanted = zip(("the input", x), *((n, p) for n, p in parameters_of(module) if p.requires_grad), strict=True)
        direction = subject.normal(*y.shape, draw=3).to(y.dtype)
        grads = subject.gradients(y * direction, wanted)
        bad = [name for name, g in zip(names, grads, strict=True) if g is not None and not torch.isfinite(g).all()]
        if bad:
            return Judgement(False, f"not finite: {', '.join(bad)}", case)
        missing = [name for name, g in zip(names, grads, strict=True) if g is None]
        # Hard attention depends on its scores where it has no derivative.
        if missing and subject.adapter.attention != "hard":
            return Judgement(False, f"no gradient reaches {', '.join(missing)}", case)
        wrong = _slope(subject, module, x, direction, names, wanted, grads)
        if wrong:
            return Judgement(False, wrong, case)
    unjudged = f", none for {len(missing)} others, as may be in hard attention" if missing else ""
    return Judgement(True, f"finite, for the input and {len(wanted) - 1 - len(missing)} parameters{unjudged}", case)


def _slope(subject: Subject, module: object, x: Tensor, direction: Tensor, names: Sequence[str],
           wanted: Sequence[Tensor], grads: Sequence[Tensor | None]) -> str:
    """What a difference quotient says against the gradients; empty if they agree, or where none can be taken."""
    if subject.adapter.attention == "hard" or subject.dtype != torch.float64:
        return ""
    if not torch.equal(subject.output(module, x.detach()), subject.output(module, x.detach())):
        return ""
    # Some gradients are zero but for rounding, as that of a bias of all keys.
    noise = 1e-3 * sum(float(g.norm()) ** 2 for g in grads if g is not None) ** 0.5
    for number, (name, t, g) in enumerate(zip(names, wanted, grads, strict=True)):
        if g is None:
            continue
        step, sides = STEP * subject.normal(*t.shape, draw=600 + number), []
        for sign in (1, -1):
            with torch.no_grad():
                t += sign * step
                sides.append(float((subject.run(module, x) * direction).sum()))
                t -= sign * step
        quotient, slope = (sides[0] - sides[1]) / (2 * STEP), float((g * step).sum()) / STEP
        if abs(quotient - slope) > 0.02 * float(g.norm()) + noise:
            return (f"the gradient of {name} is wrong: {slope:.4g} along a random direction, where the difference "
                    f"quotient is {quotient:.4g}")
    return ""
