"""Residues modulo a prime, as float64 arrays whose products run on the fast matrix kernels.

numpy's ``einsum`` neither reduces modulo a prime nor uses the fast kernels for integers. :class:`Residues` keeps the
formula of the layer untouched and overrides the two operations that it uses, ``einsum`` and ``matmul``, and addition,
subtraction and multiplication. Every partial sum stays below 2**53, so that float64 is exact: an inner product is cut
into runs of at most 2**53 // (p - 1)**2 terms.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

_LOWEST, _HIGHEST = 1 << 20, 1 << 21
PRIME_BITS = 20
#: How many primes lie between 2**20 and 2**21.
PRIME_COUNT = 73586
_CHUNK = 1 << 15


def is_prime(number: int) -> bool:
    """Whether ``number`` is prime, by trial division (for numbers below 2**22)."""
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def random_primes(count: int, seed: int, denominator: int = 1) -> list[int]:
    """``count`` distinct primes, uniform among the ``PRIME_COUNT`` primes in [2**20, 2**21) that divide no denominator."""
    source = random.Random(seed)
    primes: list[int] = []
    while len(primes) < count:
        candidate = source.randrange(_LOWEST, _HIGHEST)
        if candidate not in primes and denominator % candidate and is_prime(candidate):
            primes.append(candidate)
    return primes


class Residues(np.ndarray):
    """A float64 array of integers in [0, p), with ``prime`` = p < 2**26.

    Arithmetic among residues of one prime, and with integers, is reduced modulo p. Mixing two primes raises
    ``TypeError``.
    """

    prime: int

    def __new__(cls, values: Any, prime: int) -> Residues:
        array = np.asarray(values)
        if array.dtype == object:
            array = np.asarray([_residue(value, prime) for value in array.ravel()], np.float64).reshape(array.shape)
        elif array.dtype.kind in "iu":
            array = np.asarray(array % prime, dtype=np.float64)
        else:
            raise TypeError(f"residues are made from integers or rationals; got dtype {array.dtype}")
        residues = array.view(cls)
        residues.prime = prime
        return residues

    def __array_finalize__(self, source: Any) -> None:
        self.prime = getattr(source, "prime", 0)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.einsum:
            return _einsum(*args)
        if function is np.concatenate:
            arrays = args[0]
            return _wrap(np.concatenate([np.asarray(a) for a in arrays], *args[1:], **kwargs), _common_prime(arrays))
        return super().__array_function__(function, types, args, kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            raise TypeError(f"residues do not serve {ufunc.__name__}.{method}")
        if ufunc in (np.equal, np.not_equal):
            return ufunc(*(np.asarray(value) for value in inputs))
        prime = _common_prime(inputs)
        plain = [np.asarray(value if isinstance(value, Residues) else Residues(value, prime)) for value in inputs]
        if ufunc is np.matmul:
            return _wrap(_product(plain[0], plain[1], prime), prime)
        if ufunc in (np.add, np.subtract, np.multiply, np.negative):
            return _wrap(_reduce(ufunc(*plain), prime), prime)
        raise TypeError(f"residues do not serve {ufunc.__name__}")


def _residue(value: Any, prime: int) -> int:
    from iha_theory.scalars import as_fraction

    fraction = as_fraction(value)
    if fraction.denominator % prime == 0:
        raise ValueError(f"{fraction} has no residue modulo {prime}; draw another prime")
    return fraction.numerator * pow(fraction.denominator, -1, prime) % prime


def _common_prime(values: Any) -> int:
    primes = {value.prime for value in values if isinstance(value, Residues)}
    if len(primes) != 1:
        raise TypeError(f"residues of one prime are wanted; got primes {sorted(primes)}")
    return primes.pop()


def _wrap(array: np.ndarray, prime: int) -> Residues:
    residues = array.view(Residues)
    residues.prime = prime
    return residues


def _reduce(array: np.ndarray, prime: int) -> np.ndarray:
    """``array`` modulo the prime, in place, in runs that stay in cache; exact for |entries| < 2**53."""
    array = np.ascontiguousarray(array)
    flat = array.reshape(-1)
    quotient = np.empty(min(_CHUNK, flat.size))
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        q = quotient[: part.size]
        np.multiply(part, 1.0 / prime, out=q)
        np.floor(q, out=q)
        np.multiply(q, prime, out=q)
        np.subtract(part, q, out=part)
        # The rounded quotient may be off by one either way.
        if part.min() < 0:
            part[part < 0] += prime
        if part.max() >= prime:
            part[part >= prime] -= prime
    return array


def _product(left: np.ndarray, right: np.ndarray, prime: int) -> np.ndarray:
    """The (batched) matrix product modulo the prime, in runs of inner terms whose sum is exact."""
    if left.ndim == 2 and left.size and left.sum(axis=1).max() <= 1:
        # Each row picks at most one row of the right side, as one-hot mixing does: nothing to reduce.
        return np.matmul(left, right)
    run = (1 << 53) // (prime - 1) ** 2
    inner = left.shape[-1]
    if inner <= run:
        return _reduce(np.matmul(left, right), prime)
    total = None
    for start in range(0, inner, run):
        part = _reduce(np.matmul(left[..., start : start + run], right[..., start : start + run, :]), prime)
        total = part if total is None else _reduce(total + part, prime)
    return total if total is not None else np.matmul(left, right)


def _einsum(pattern: str, *operands: Any) -> Residues:
    """``np.einsum`` of two residue arrays as one batched matrix product; every axis is batch, inner, left or right."""
    if len(operands) != 2:
        raise TypeError(f"residues contract two arrays at a time; got {len(operands)}")
    prime = _common_prime(operands)
    inputs, output = pattern.replace(" ", "").split("->")
    left_axes, right_axes = inputs.split(",")
    lone = [a for a in output if (a in left_axes) != (a in right_axes)]
    if lone and lone[0] in right_axes:
        # The product comes out in the order of the output's axes, so that the next one needs no copy.
        left_axes, right_axes, operands = right_axes, left_axes, operands[::-1]
    size = dict(zip(left_axes, operands[0].shape, strict=True)) | dict(zip(right_axes, operands[1].shape, strict=True))
    batch = [a for a in left_axes if a in right_axes and a in output]
    inner = [a for a in left_axes if a in right_axes and a not in output]
    rows = [a for a in left_axes if a not in right_axes]
    columns = [a for a in right_axes if a not in left_axes]

    def arranged(array: Any, axes: str, first: list[str], second: list[str]) -> np.ndarray:
        order = [axes.index(a) for a in (*batch, *first, *second)]
        shape = [size[a] for a in batch] + [int(np.prod([size[a] for a in group])) for group in (first, second)]
        return np.asarray(array).transpose(order).reshape(shape)

    product = _product(arranged(operands[0], left_axes, rows, inner), arranged(operands[1], right_axes, inner, columns),
                       prime)
    axes = [*batch, *rows, *columns]
    result = product.reshape([size[a] for a in axes]).transpose([axes.index(a) for a in output])
    return _wrap(result, prime)
