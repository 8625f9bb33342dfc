# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
"""The constructions of the book through the torch layer, in every dtype, against the exact answer and a computed bound."""

from dataclasses import replace
from math import log

import numpy as np
import pytest
import torch

from constructions.device_instances import LARGEST, device_cases, filter_case, shift_case
from constructions.temperature import least_base
from iha_theory import IHA
from iha_theory.torch_device import DTYPES, arithmetic_of, device_of, outcome, output
from tests.torch_reference import DOUBLE

needs_gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here")]
DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", range(len(device_cases("float64"))))
def test_every_construction_is_within_its_bound(device, dtype, index):
    result = outcome(device_cases(dtype)[index], device, dtype)
    assert result.is_within, result


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here")
@pytest.mark.parametrize("index", range(len(device_cases("float64"))))
def test_every_construction_is_within_its_bound_with_tf32(index):
    result = outcome(device_cases("tf32")[index], "cuda", "float32", tf32=True)
    assert result.is_within, result


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_bounds_say_something(dtype):
    """Relative to what they bound they are small in all but the coarsest dtypes, and below one in these."""
    for case in device_cases(dtype):
        relative = case.bound(arithmetic_of(DTYPES[dtype])).max() / np.abs(case.target).max()
        assert relative < {"float64": 1e-6, "float32": 1e-3, "float16": 0.2, "bfloat16": 1}[dtype]


def changed(case, name, index, by):
    fields = {field: array.copy() for field, array in case.weights.fields().items()}
    fields[name][index] += by
    return replace(case, weights=IHA(**fields))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_wrong_weight_leaves_the_bound(dtype):
    for case in device_cases(dtype):
        assert not outcome(changed(case, "alpha_v", (0, 0, 0), 1), "cpu", dtype).is_within
        size = case.weights.sizes
        read = np.argwhere(case.weights.collapse[0])[0]
        assert not outcome(changed(case, "collapse", (0, *read), 1), "cpu", dtype).is_within
        swapped = replace(case, weights=replace(case.weights, alpha_k=case.weights.alpha_k.transpose(1, 0, 2)))
        assert size["head"] == 1 or not outcome(swapped, "cpu", dtype).is_within


@pytest.mark.parametrize(("n", "largest"), [(4, 8), (9, 100), (16, 2**22)])
def test_the_threshold_is_exact(n, largest):
    threshold = log(least_base(n, 2 * largest))
    for factor, recovered in ((1 + 1e-6, True), (1 - 1e-3, False)):
        case = shift_case(n, largest, beta=threshold * factor, is_soft=True)
        worst = case.x.copy()
        worst[:, 0] = -largest
        worst[0, 0] = largest
        got = output(replace(case, x=worst), device_of("cpu"), DOUBLE)
        wanted = np.stack([np.roll(worst[:, 0], -i)[:n] for i in range(n)])
        assert (np.round(got) == wanted).all() == recovered


def test_one_more_bit_is_lost_in_low_precision():
    """The stated ranges end where they should: beyond them an integer is not held by the dtype."""
    for dtype in ("float16", "bfloat16"):
        power, _ = LARGEST[dtype]
        case = shift_case(4, power)
        beyond = case.x.copy()
        beyond[0, 0] = power + 1
        got = output(replace(case, x=beyond), device_of("cpu"), DTYPES[dtype])
        assert power + 1 not in got


def test_a_device_or_dtype_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="dtype: got 'float8'"):
        outcome(filter_case(), "cpu", "float8")
    with pytest.raises(ValueError, match="device: got 'abacus'"):
        outcome(filter_case(), "abacus")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="finds no CUDA device"):
            outcome(filter_case(), "cuda")
    with pytest.raises(ValueError, match="can make any error"):
        arithmetic_of(torch.bfloat16).gamma(256, 0, 0)
