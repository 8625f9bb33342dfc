"""What the tests of the torch layer compare with: the numpy formula, with the same mask, on the same weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import settings
from hypothesis import strategies as st

from iha_theory import IHA, flat_causal, forward, hard, linear, softmax, token_causal, windowed

QUICK = settings(max_examples=60, deadline=None, derandomize=True)
#: Arguments of :func:`random_weights`.
LAYERS = st.fixed_dictionaries({
    "heads": st.integers(1, 3), "pseudo": st.integers(1, 4), "model": st.integers(1, 5), "key": st.integers(1, 5),
    "value": st.integers(1, 5), "seed": st.integers(0, 99)})

# The machine that tests is shared, and the sizes here are small.
torch.set_num_threads(1)

MASKS = {"none": None, "token": token_causal, "flat": flat_causal}
DOUBLE = torch.float64
#: Relative to the largest entry of what is compared.
AGREES = 1e-12


def random_weights(seed: int, heads: int, pseudo: int, model: int, key: int, value: int) -> IHA:
    """Every entry normal."""
    normal = np.random.default_rng(seed).standard_normal
    mixing = (heads, heads, pseudo)
    return IHA(normal((heads, model, key)), normal((heads, model, key)), normal((heads, model, value)), normal(mixing),
               normal(mixing), normal(mixing), normal(mixing))


def mask_of(mask: str, window: int | None = None, seen: np.ndarray | None = None, pairs: np.ndarray | None = None):
    """The predicate of the numpy formula: the layer's mask, seen keys (token,), seen pairs (token, token)."""
    inner = MASKS[mask] or (lambda n, j, n2, j2: (n == n) & (j == j) & (n2 == n2) & (j2 == j2))
    if window is not None:
        inner = windowed(inner, window)

    def predicate(n, j, n2, j2):
        result = inner(n, j, n2, j2)
        if seen is not None:
            result = result & seen[n2]
        if pairs is not None:
            result = result & pairs[n, n2]
        return result

    return predicate


def by_formula(weights: IHA, x: np.ndarray, attention: str = "softmax", **mask) -> np.ndarray:
    """(token, head * value): Algorithm 1 under a mask of :func:`mask_of`."""
    predicate = mask_of(**mask)
    operator = {"softmax": softmax(mask=predicate),
                "linear": lambda q, k, v: linear(q, k, v, mask=predicate),
                "hard": lambda q, k, v: hard(q, k, v, mask=predicate)}[attention]
    return forward(weights, x, operator)


def close(got, wanted, bound: float = AGREES) -> bool:
    """Whether two arrays agree relative to the largest entry of the second."""
    got, wanted = (t.detach().to("cpu", DOUBLE).numpy() if isinstance(t, torch.Tensor) else t for t in (got, wanted))
    if got.shape != wanted.shape or not np.isfinite(got).all():
        return False
    return bool(np.abs(got - wanted).max(initial=0) <= bound * max(np.abs(wanted).max(initial=0), 1e-30))


def outputs_and_gradients(layer: Any, x: torch.Tensor, **call: Any) -> list[torch.Tensor]:
    """The output, and the gradients of the input and of all parameters for a fixed direction."""
    x = x.detach().clone().requires_grad_()
    y, _ = layer(x, need_weights=False, **call)
    direction = torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(1))
    wanted = [x, *(p for p in layer.parameters() if p.requires_grad)]
    return [y, *torch.autograd.grad(y, wanted, direction)]
