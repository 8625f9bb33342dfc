"""Initial mixing, and what each guarantees (Theorem 2; H heads of keys and values may be fewer than those of queries).

``"mha"``
    The layer *is* multi-head attention with its projections, to rounding, under no mask, the token and the flat causal
    mask, windows and key padding, and without rotary positions or with one position per token. It is free to separate:
    R picks the last pseudo-head, which sees all P copies of every visible key under each of these masks, keys are
    copies of the base keys, and pseudo-values are v + eps_j v' with sum_j eps_j = 0. The copies of a key weigh the
    same, so the eps_j cancel in the output; but they do not cancel in the keys' gradients. (At the plain copy, eps = 0,
    with no mask or the token mask, all copies receive equal gradients for ever.) The pseudo-queries that R ignores are
    arbitrary; they are copies with noise, so that they differ as soon as R takes them in.
``"noise"``
    ``"mha"`` without its constraints: independent noise on all of alpha and R. Not multi-head attention, but within
    the order of the noise of it. Nothing is tied.
``"uniform"``
    Uniform with variance 1 / fan-in on all of alpha and R: no relation to multi-head attention. All pseudo-heads are
    alive and different, and mixing keeps variances.

A spare pseudo-head is never switched off with zeros: a zero pseudo-key scores 0 and takes weight exp(0) from the
others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from iha_theory.torch_mixing import Mixing

Init = Literal["mha", "noise", "uniform"]


def copies(heads: int, pseudo: int, like: Tensor) -> Tensor:
    """(source, head, pseudo): every pseudo-head of head h is base head h."""
    return torch.eye(heads, dtype=like.dtype, device=like.device)[:, :, None].repeat(1, 1, pseudo)


def last_picked(heads: int, pseudo: int, like: Tensor) -> Tensor:
    """(out, head, pseudo): output head h is the last pseudo-head of head h."""
    result = like.new_zeros(heads, heads, pseudo)
    result[:, :, -1] = torch.eye(heads, dtype=like.dtype, device=like.device)
    return result


def _mha(mixing: Mixing, noise: float, normal: Callable[[Tensor], Tensor]) -> tuple[Tensor, ...]:
    q, k, v, r = mixing.alpha_q, mixing.alpha_k, mixing.alpha_v, mixing.collapse
    spare = noise * normal(q)
    spare[:, :, -1] = 0
    eps = noise * normal(v)
    eps = eps - eps.mean(2, keepdim=True)
    return (copies(*q.shape[1:], like=q) + spare, copies(*k.shape[1:], like=k), copies(*v.shape[1:], like=v) + eps,
            last_picked(*r.shape[1:], like=r))


def _noise(mixing: Mixing, noise: float, normal: Callable[[Tensor], Tensor]) -> tuple[Tensor, ...]:
    q, k, v, r = mixing.alpha_q, mixing.alpha_k, mixing.alpha_v, mixing.collapse
    return (*(copies(*t.shape[1:], like=t) + noise * normal(t) for t in (q, k, v)),
            last_picked(*r.shape[1:], like=r) + noise * normal(r))


@torch.no_grad()
def initialize(mixing: Mixing, init: Init = "mha", noise: float = 0.05,
               generator: torch.Generator | None = None) -> None:
    """Set alpha and R in place.

    Args:
        init: "mha", "noise" or "uniform"; see the module's text for what each guarantees.
        noise: standard deviation of the noise ("mha", "noise"). generator: of the random numbers.

    Raises:
        ValueError: another name, or noise that is negative.
    """
    if noise < 0:
        raise ValueError(f"noise: got {noise}, wanted a standard deviation of at least 0")

    def normal(t: Tensor) -> Tensor:
        return torch.empty_like(t).normal_(generator=generator)

    if init == "uniform":
        for parameter in mixing.parameters():
            fan_in = parameter.shape[0] if parameter is not mixing.collapse else parameter[0].numel()
            bound = (3 / fan_in) ** 0.5
            parameter.uniform_(-bound, bound, generator=generator)
        return
    if init not in ("mha", "noise"):
        raise ValueError(f"init: got {init!r}, wanted 'mha', 'noise' or 'uniform'")
    values = (_mha if init == "mha" else _noise)(mixing, noise, normal)
    for parameter, value in zip((mixing.alpha_q, mixing.alpha_k, mixing.alpha_v, mixing.collapse), values, strict=True):
        parameter.copy_(value)


def parameter_groups(model: nn.Module, *, weight_decay: float = 0.01,
                     mixing_lr: float | None = None) -> list[dict[str, Any]]:
    """Two groups for an optimiser: all parameters but the mixing, and the mixing, without weight decay.

    Decay pulls alpha and R towards 0, where a pseudo-key scores 0 and still takes weight, and away from the copies at
    which the layer is multi-head attention.

    Args:
        model: any module; the mixing of every layer in it is found. weight_decay: of the first group.
        mixing_lr: learning rate of the second group; None takes the optimiser's.
    """
    from iha_theory.torch_mixing import Mixing

    mixing = {id(p): p for module in model.modules() if isinstance(module, Mixing) for p in module.parameters()}
    others = [p for p in model.parameters() if id(p) not in mixing]
    second: dict[str, Any] = {"params": list(mixing.values()), "weight_decay": 0.0}
    if mixing_lr is not None:
        second["lr"] = mixing_lr
    return [{"params": others, "weight_decay": weight_decay}, second]
