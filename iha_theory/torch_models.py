"""Conversion of a whole model: every ``torch.nn.MultiheadAttention`` in it becomes an interleaved-head layer."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from iha_theory.torch_init import Init
from iha_theory.torch_layer import InterleavedHeadAttention


def convert_model(module: nn.Module, num_pseudo_heads: int | None = None, *, mask: str = "none",
                  init: Init = "mha") -> tuple[str, ...]:
    """Replace each ``nn.MultiheadAttention`` inside a module, in place: all of them, or none.

    With ``init="mha"`` the model's outputs stay the same, in training and in evaluation, wherever it was defined:
    attention of which all keys are masked gives zeros instead of NaN, and an ``nn.TransformerEncoder`` in evaluation
    no longer packs away padded tokens, so that their own outputs are what training mode gives, not zeros.
    ``requires_grad`` of each weight is kept; the mixing trains. A layer that stands at several places stays one layer.
    An optimiser made before holds the old parameters: make a new one.

    Args:
        module: any module but an ``nn.MultiheadAttention`` itself.
        num_pseudo_heads: P of every new layer; None takes each layer's number of heads.
        mask: of every new layer; see :class:`InterleavedHeadAttention`. "none" leaves masks to the caller, as before.
            A causal one keeps the outputs only where the caller masks causally, with as many queries as keys.
        init: of alpha and R; "mha" alone keeps the outputs.

    Returns:
        The names of the modules that were replaced, in the order of ``module.named_modules()``.

    Raises:
        ValueError: a module that cannot be replaced: ``add_zero_attn``, ``bias_k``/``bias_v``, a subclass, hooks, a
            parametrized projection, weights shared with another module. It names all of them, and nothing is replaced.
    """
    if isinstance(module, nn.MultiheadAttention):
        raise ValueError("module: got an nn.MultiheadAttention, which cannot be replaced in place; wanted a module "
                         "that contains some, or call InterleavedHeadAttention.from_mha")
    new: dict[nn.MultiheadAttention, InterleavedHeadAttention] = {}
    refused: list[str] = []
    found = [(name, m) for name, m in module.named_modules(remove_duplicate=False)
             if isinstance(m, nn.MultiheadAttention)]
    for name, mha in found:
        if mha in new:
            continue
        reason = _why_not(mha, module)
        try:
            if not reason:
                new[mha] = _converted(mha, num_pseudo_heads, mask, init)
        except ValueError as error:
            reason = str(error)
        if reason:
            refused.append(f"{name}: {reason}")
    if refused:
        raise ValueError("convert_model: nothing was replaced, because of\n" + "\n".join(refused))
    for name, mha in found:
        parent, _, last = name.rpartition(".")
        setattr(module.get_submodule(parent), last, new[mha])
    layers = set(new.values())
    for encoder in module.modules():
        if isinstance(encoder, nn.TransformerEncoder) and not layers.isdisjoint(encoder.modules()):
            # It would hand nested tensors to layers that take them on the fused path alone.
            encoder.use_nested_tensor = False
    return tuple(name for name, _ in found)


def _why_not(mha: nn.MultiheadAttention, module: nn.Module) -> str | None:
    """Why a copy of the weights would lose something of this layer."""
    if type(mha) is not nn.MultiheadAttention:
        return (f"got {type(mha).__name__}, a subclass, which may compute something else; wanted "
                "nn.MultiheadAttention itself")
    if type(mha.out_proj) not in (nn.Linear, NonDynamicallyQuantizableLinear):
        return f"out_proj: got {type(mha.out_proj).__name__}, wanted a plain nn.Linear"
    for name, hooks in (("forward hooks", mha._forward_hooks), ("forward pre-hooks", mha._forward_pre_hooks),
                        ("backward hooks", mha._backward_hooks), ("backward pre-hooks", mha._backward_pre_hooks)):
        if hooks:
            return f"it has {name}, which the new layer would not have; remove them first"
    own = {id(m) for m in mha.modules()}
    shared = {id(p) for m in module.modules() if id(m) not in own for p in m.parameters(recurse=False)}
    for name, parameter in mha.named_parameters():
        if id(parameter) in shared:
            return f"{name} is shared with another module; copies would no longer be shared"
    return None


def _converted(mha: nn.MultiheadAttention, num_pseudo_heads: int | None, mask: str,
               init: Init) -> InterleavedHeadAttention:
    layer = InterleavedHeadAttention.from_mha(mha, num_pseudo_heads, mask=mask, init=init)
    for parameter, trains in zip(_projections(layer), _trained(mha), strict=True):
        parameter.requires_grad_(trains)
    return layer


def _projections(layer: InterleavedHeadAttention) -> Iterator[Tensor]:
    for projection in (layer.q_proj, layer.k_proj, layer.v_proj):
        yield projection.weight
    if layer.q_proj.bias is not None:
        for projection in (layer.q_proj, layer.k_proj, layer.v_proj):
            yield projection.bias
    if layer.out_proj is not None:
        yield from layer.out_proj.parameters()


def _trained(mha: nn.MultiheadAttention) -> Iterator[bool]:
    """``requires_grad`` of the weights in the order of :func:`_projections`."""
    weights = ((mha.q_proj_weight, mha.k_proj_weight, mha.v_proj_weight) if mha.in_proj_weight is None
               else (mha.in_proj_weight,) * 3)
    for weight in weights:
        yield weight.requires_grad
    if mha.in_proj_bias is not None:
        yield from (mha.in_proj_bias.requires_grad,) * 3
    for parameter in mha.out_proj.parameters():
        yield parameter.requires_grad
