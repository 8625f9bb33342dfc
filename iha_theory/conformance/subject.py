"""The layer under audit: copies of it, calls of it, and what a call that goes wrong becomes."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from iha_theory.conformance.adapter import Adapter
from iha_theory.conformance.weights import Weights

#: Two outputs agree if they part by no more than this, relative to the largest entry: by the dtype they are made in.
#: Layers that run their softmax in single precision whatever the input pass too.
AGREES = {torch.float64: 1e-5, torch.float32: 1e-3}
#: A change this small is none. What does not depend on a token does not change in a single bit.
CHANGES = {torch.float64: 1e-9, torch.float32: 1e-6}
#: Random parameters are drawn this often where one draw could be unlucky.
DRAWS = 4
#: Where a layer keeps its number of features.
FEATURES = ("embed_dim", "d_model", "hidden_size", "dim", "n_embd", "model_dim")


class LayerError(Exception):
    """The layer raised, or returned something that is no output; the text says which."""


class Subject:
    """A layer, its adapter, and the random numbers that it is tried with.

    Attributes:
        dtype: float64 where the layer runs in it, else float32.
        features: D. tokens: N. pseudo: P where the weights are named, else 0.
        kind: the mask that was said, else the one that the leak test found. is_affine: what repeated tokens showed.
    """

    def __init__(self, layer: Any, adapter: Adapter, seed: int) -> None:
        self.layer, self.adapter, self.seed = layer, adapter, seed
        self.is_module = isinstance(layer, nn.Module)
        self.dtype = torch.float64
        self.features = self._features()
        # Three pads go with them.
        most = 10**9 if adapter.tokens is None else adapter.tokens - 3
        self.tokens = min(most, 7 if adapter.window is None else max(7, adapter.window + 3))
        self.kind = adapter.mask
        self.is_affine: bool | None = None
        self.pseudo = 0

    def _features(self) -> int:
        if self.adapter.features is not None:
            return self.adapter.features
        for name in FEATURES:
            size = getattr(self.layer, name, None)
            if isinstance(size, int) and not isinstance(size, bool) and size > 0:
                return size
        raise ValueError(f"audit: the number of features of {named(self.layer)} is not in any of "
                         f"{', '.join(FEATURES)}; say Adapter(features=D)")

    def generator(self, draw: int = 0) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed * 1009 + draw)

    def normal(self, *shape: int, draw: int = 0, dtype: torch.dtype | None = None) -> Tensor:
        """Standard normal numbers, the same for the same draw."""
        t = torch.randn(shape, generator=self.generator(draw), dtype=torch.float64)
        return t.to(dtype or self.dtype)

    def input(self, batch: int = 2, tokens: int | None = None, draw: int = 0) -> Tensor:
        """(batch, token, D)."""
        return self.normal(batch, self.tokens if tokens is None else tokens, self.features, draw=draw)

    def given(self, dtype: torch.dtype | None = None) -> Any:
        """A copy of the layer as it was given, on the CPU and in eval mode.

        Raises:
            ValueError: it cannot be copied.
        """
        if not self.is_module:
            return self.layer
        try:
            return cast(copy.deepcopy(self.layer).cpu(), dtype or self.dtype).eval()
        except Exception as error:
            raise ValueError(f"audit: {named(self.layer)} cannot be copied to the CPU ({told(error)}); give a fresh "
                             "layer, and one that keeps no output or open file") from error

    def randomised(self, draw: int = 0, gain: float = 1.0) -> Any:
        """A copy with every parameter redrawn: normal, 1 / sqrt(last dimension); vectors are moved by 0.3 normal."""
        module = self.given(torch.float64)
        if not self.is_module:
            return module
        generator = self.generator(1_000_003 + draw)
        with torch.no_grad():
            for parameter in module.parameters():
                if parameter.is_floating_point():
                    drawn = gain * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                    new = parameter + 0.3 * drawn if parameter.dim() < 2 else drawn / parameter.shape[-1] ** 0.5
                    parameter.copy_(new)
        return cast(module, self.dtype)

    def run(self, module: Any, x: Tensor, padding: Tensor | None = None) -> Tensor:
        """The output for x, checked for its kind and shape.

        Raises:
            LayerError: the layer raised, or returned no tensor of the input's shape.
        """
        call = self.adapter.call or plain_call
        try:
            # A copy: a layer that writes into its input must not change what it is compared with.
            y = call(module, x.clone(), padding)
        except LayerError:
            raise
        except SystemExit as stop:
            raise LayerError(f"stopped Python with exit code {stop.code}") from stop
        except Exception as error:
            raise LayerError(told(error)) from error
        if isinstance(y, tuple | list) and y:
            y = y[0]
        if not isinstance(y, Tensor):
            raise LayerError(f"returned a {type(y).__name__}, wanted a tensor")
        if not y.is_floating_point():
            raise LayerError(f"returned {dtype_name(y.dtype)}, wanted floating-point numbers")
        width = y.shape[-1] if self.adapter.out is None and self.adapter.white_box and y.dim() else self.features
        if tuple(y.shape) != (*x.shape[:-1], width):
            raise LayerError(f"returned the shape {tuple(y.shape)} for the input {tuple(x.shape)}")
        return y

    def output(self, module: Any, x: Tensor, padding: Tensor | None = None) -> Tensor:
        """:meth:`run` without gradients, in float64 numbers.

        Raises:
            LayerError: as there, or something in the output is not finite.
        """
        with torch.no_grad():
            y = self.run(module, x, padding).double()
        if not torch.isfinite(y).all():
            raise LayerError(f"returned {int((~torch.isfinite(y)).sum())} entries that are not finite")
        return y

    def decoded(self, module: Any, x: Tensor) -> Tensor:
        """The output made token by token."""
        decode = self.adapter.decode
        if decode is None:
            raise LayerError("has no way to decode")
        with torch.no_grad():
            try:
                y = decode(module, x.clone())
            except Exception as error:
                raise LayerError(told(error)) from error
        if not isinstance(y, Tensor) or y.shape[:-1] != x.shape[:-1]:
            shape = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
            raise LayerError(f"decode returned {shape} for the input {tuple(x.shape)}")
        return y.double()

    def gradients(self, y: Tensor, wanted: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
        """Of the sum of y, None where it does not depend.

        Raises:
            LayerError: the backward pass raised.
        """
        try:
            return torch.autograd.grad(y.sum(), wanted, allow_unused=True)
        except Exception as error:
            raise LayerError(f"the backward pass {told(error)}") from error

    @property
    def takes_padding(self) -> bool:
        """Whether padding can be passed."""
        if self.adapter.call is not None:
            return self.adapter.padding
        return "key_padding_mask" in arguments(self.layer)

    @property
    def tolerance(self) -> float:
        return AGREES[self.dtype]

    def weights(self, module: Any) -> Weights:
        """The named weights of a copy, in float64.

        Raises:
            ValueError: as :meth:`Adapter.read`.
        """
        return self.adapter.read(module).to(torch.float64)


def cast(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Real numbers in another dtype; complex ones, such as rotary phases, stay what they are."""
    return module._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)


def arguments(layer: Any) -> tuple[str, ...]:
    """The names of the arguments of a module's forward, or of a callable."""
    try:
        return tuple(inspect.signature(layer.forward if isinstance(layer, nn.Module) else layer).parameters)
    except (TypeError, ValueError):
        return ()


def plain_call(layer: Any, x: Tensor, padding: Tensor | None) -> Any:
    """``layer(x)``, three times x where it wants query, key and value, without weights where they can be left out.

    A layer that says ``batch_first = False`` gets its tokens first.
    """
    names = arguments(layer)
    turn = getattr(layer, "batch_first", True) is False
    x = x.transpose(0, 1) if turn else x
    inputs = (x, x, x) if names[:3] == ("query", "key", "value") else (x,)
    options: dict[str, Any] = {}
    if padding is not None:
        options["key_padding_mask"] = padding
    if "need_weights" in names:
        options["need_weights"] = False
    y = layer(*inputs, **options)
    y = y[0] if isinstance(y, tuple | list) and y else y
    return y.transpose(0, 1) if turn and isinstance(y, Tensor) else y


def told(error: BaseException) -> str:
    """An exception on one line, without what a terminal or a file could not take."""
    text = "".join(c if c.isprintable() else "?" for c in " ".join(str(error).split()))
    return f"raised {type(error).__name__}" + (f": {text[:240]}" if text else "")


def named(layer: Any) -> str:
    """The layer's name for people."""
    return type(layer).__name__ if isinstance(layer, nn.Module) else getattr(layer, "__name__", type(layer).__name__)


def dtype_name(dtype: torch.dtype) -> str:
    """The name of a dtype, as people write it."""
    return str(dtype).removeprefix("torch.")


def shape_of(subject: Subject) -> str:
    """What a layer is tried on, in the paper's letters."""
    return f"D={subject.features}, N={subject.tokens}"


def tried_on(subject: Subject) -> str:
    """:func:`shape_of`, and that the parameters are random where there are any."""
    return f"{shape_of(subject)}" + (", random parameters" if subject.is_module else "")


def parameters_of(module: object) -> list[tuple[str, torch.nn.Parameter]]:
    """The parameters of a module, with their names; a callable has none."""
    return list(module.named_parameters()) if isinstance(module, torch.nn.Module) else []


def trained(module: object) -> list[Tensor]:
    """The parameters that want a gradient."""
    return [p for _, p in parameters_of(module) if p.requires_grad]
