"""Theorems 3 and 4 in floating point: the instances that ``verify --device`` runs, each with a computed bound.

Theorem 3. Every number on the way is a sum of products, so the error of an output entry is at most gamma times the
layer on absolute values, where gamma counts the roundings between a weight and the output: 20 of stored numbers (each
of queries, keys and values: the weight, the input, the projection, alpha, the mixture; then the state, the attended
values, R, the output, and the target itself), the lengths of all sums, and two factors for each of nine products.

Theorem 4. Scores are 0 and 1, so ties are exact in every arithmetic and hard attention errs by the values alone. At the
inverse temperature beta the output is the wanted token plus (sum of x - N x_s) / (b + N - 1), b = e^beta; roundings move
the logit beta by a factor 1 - delta at most, and the leak is counted twice, since small weights may be lost altogether.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, log

import numpy as np

from constructions.oracle import filter_bank
from constructions.shifts import cyclic_shifts, with_positions, workspace
from constructions.temperature import least_base
from constructions.theorem_3_polynomial_filter import polynomial_filter
from iha_theory.attention import linear
from iha_theory.device_cases import Arithmetic, DeviceCase
from iha_theory.layer import IHA, forward
from iha_theory.scalars import RATIONALS, to_float

_STORED, _FACTORS = 20, 18
#: How far above the exact threshold beta is taken: more than roundings of the logit can take away.
_ABOVE = 1.1


def _float_weights(weights: IHA) -> IHA:
    return IHA(**{name: to_float(array) for name, array in weights.fields().items()})


def _sums(weights: IHA, tokens: int) -> int:
    """The lengths of the sums between an input and an output, all together."""
    size = weights.sizes
    return 3 * (size["model"] + size["source"]) + tokens * size["pseudo"] + size["key"] + size["head"] * size["pseudo"]


def filter_case(n: int = 7, k: int = 9, d: int = 2, seed: int = 0, pseudo_heads: int | None = None, edges: int = 2,
                is_average: bool = False) -> DeviceCase:
    """The bank [X, AX, ..., A^(k-1) X] of a directed graph on n nodes with so many edges out of each.

    A's entries are 0 and 1, or 0 and 1/``edges`` for averages; X is a normal sample, to multiples of 1/64.
    """
    source = np.random.default_rng(seed)
    a = np.zeros((n, n), dtype=object) + 0
    for i in range(n):
        a[i, source.choice(n, edges, replace=False)] = Fraction(1, edges) if is_average else 1
    exact = RATIONALS.array(a)
    x = np.round(source.standard_normal((n, d)) * 64) / 64
    weights = _float_weights(polynomial_filter(exact, k, d, pseudo_heads=pseudo_heads))
    numerators = np.array([[int(value * 64) for value in row] for row in x], dtype=object)
    target = to_float(filter_bank(exact, RATIONALS.array(numerators), k)) / 64
    inputs = np.concatenate([x, np.eye(n)], axis=1)
    magnitude = IHA(**{name: np.abs(array) for name, array in weights.fields().items()})
    scale = forward(magnitude, np.abs(inputs), linear)[:, : k * d]
    size = weights.sizes

    def bound(arithmetic: Arithmetic) -> np.ndarray:
        return arithmetic.gamma(_STORED, _sums(weights, n), _FACTORS) * scale

    name = f"Theorem 3, {'average' if is_average else 'sum'}, n={n}, k={k}, d={d}, H={size['head']}, P={size['pseudo']}"
    return DeviceCase(name, weights, inputs, target, "linear", bound)


def shift_case(n: int = 9, largest: int = 64, seed: int = 0, *, beta: float | None = None,
               is_soft: bool = False) -> DeviceCase:
    """All cyclic shifts of n tokens with |x| <= ``largest``, both ends among them, by hard attention.

    With ``is_soft`` by softmax at the inverse temperature ``beta``; None takes a tenth more than the exact threshold
    ln((N-1)(4 largest - 1)).
    """
    source = np.random.default_rng(seed)
    tokens = source.integers(-largest, largest + 1, (n, 1)).astype(float)
    tokens[0], tokens[1:3] = largest, -largest
    weights = _float_weights(cyclic_shifts(n))
    size, target = weights.sizes, workspace(tokens, n)
    if is_soft and beta is None:
        beta = _ABOVE * log(least_base(n, 2 * largest))

    def bound(arithmetic: Arithmetic) -> np.ndarray:
        added = _sums(weights, n) + (0 if beta is None else int(2 * beta) + 8)
        gamma = arithmetic.gamma(_STORED + 1, added, _FACTORS)
        if beta is None:
            return gamma * np.abs(target)
        delta = arithmetic.gamma(12, size["model"] * 2 + size["source"] * 2 + size["key"], 10)
        base = exp(beta * (1 - delta))
        leak = (np.abs(tokens.sum() - n * target)) / (base + n - 1)
        return 2 * leak + gamma * (np.abs(target) + n * np.abs(tokens).sum() / (base + n - 1))

    how = "hard attention" if beta is None else f"softmax, beta={beta:.2f}"
    return DeviceCase(f"Theorem 4, N={n}, |x| <= {largest}, {how}", weights, with_positions(tokens), target,
                      "hard" if beta is None else "softmax", bound, beta, is_rounded=True)


#: The largest |x| that is recovered: integers H |x| that a dtype holds exactly, if H is a power of two, and if not.
LARGEST = {"float64": (2**22, 2**22), "float32": (2**22, 2**22), "tf32": (2048, 512), "float16": (2048, 512),
           "bfloat16": (256, 64)}


def device_cases(dtype: str) -> tuple[DeviceCase, ...]:
    """The instances of a dtype ("tf32": float32 with TF32 products): banks, and shifts with 2, 3 and 4 heads."""
    power, other = LARGEST[dtype]
    return (filter_case(), filter_case(n=5, k=4, d=3, edges=3, is_average=True),
            filter_case(n=8, k=9, edges=3, is_average=True), filter_case(n=6, k=16, d=1, pseudo_heads=2),
            *(shift_case(n, largest, is_soft=is_soft) for n, largest in ((4, power), (9, other), (16, power))
              for is_soft in (False, True)))
