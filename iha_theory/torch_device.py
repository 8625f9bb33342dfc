"""Runs :class:`iha_theory.device_cases.DeviceCase` through the torch layer on a device, and judges by the bound."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from iha_theory.device_cases import Arithmetic, DeviceCase
from iha_theory.torch_layer import InterleavedHeadAttention

DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Outcome(NamedTuple):
    """The error of a case and its bound, where the one is the largest share of the other, and whether all is well."""

    case: str
    device: str
    dtype: str
    error: float
    bound: float
    is_within: bool


def arithmetic_of(dtype: torch.dtype, *, tf32: bool = False) -> Arithmetic:
    """The roundings of a dtype: sums are kept in float32 at least; with TF32 factors have 11 significant bits."""
    unit = torch.finfo(dtype).eps / 2
    added = min(unit, torch.finfo(torch.float32).eps / 2)
    return Arithmetic(unit, added, 2.0**-11 if tf32 and dtype == torch.float32 else 0.0)


def device_of(name: str) -> torch.device:
    """The device of a name.

    Raises:
        ValueError: there is none here.
    """
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device: got {name!r}, wanted cpu or cuda") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device: got {name!r}, but torch {torch.__version__} finds no CUDA device here")
    return device


def output(case: DeviceCase, device: torch.device, dtype: torch.dtype) -> np.ndarray:
    """The layer's output on a device, as float64: (token, column)."""
    layer = InterleavedHeadAttention.from_weights(case.weights, attention=case.attention, temperature=case.temperature,
                                                  batch_first=True, device=device, dtype=dtype).freeze_mixing()
    with torch.no_grad():
        y, _ = layer(torch.tensor(case.x, device=device, dtype=dtype)[None], need_weights=False)
    return y[0, :, : case.target.shape[1]].to("cpu", torch.float64).numpy()


def outcome(case: DeviceCase, device: str = "cpu", dtype: str = "float64", *, tf32: bool = False) -> Outcome:
    """One case, judged.

    Raises:
        ValueError: no such device, or a dtype that is not among :data:`DTYPES`.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype: got {dtype!r}, wanted one of {', '.join(DTYPES)}")
    where = device_of(device)
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        got = output(case, where, DTYPES[dtype])
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    error, bound = np.abs(got - case.target), case.bound(arithmetic_of(DTYPES[dtype], tf32=tf32))
    is_within = bool((error <= bound).all())
    if case.is_rounded:
        is_within = is_within and bool((np.round(got) == case.target).all())
    worst = np.unravel_index(np.argmax(error / np.maximum(bound, np.finfo(float).tiny)), error.shape)
    return Outcome(case.name, device, dtype + (", TF32" if tf32 else ""), float(error[worst]), float(bound[worst]),
                   is_within)
