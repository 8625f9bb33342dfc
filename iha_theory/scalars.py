"""The scalars: what the entries of a layer may be, and therefore what equality means.

A layer is written once, over arrays whose elements add and multiply. The domain of the elements decides how strong
an equality is:

==============  ==========================================  ==========================================
domain          elements                                    an equality of arrays
==============  ==========================================  ==========================================
``POLYNOMIALS`` ``PolyElement``, ``FracElement`` (sympy)    is decided, for every value of the symbols
``INTEGERS``    ``int``, ``flint.fmpz``                     is decided, for these numbers
``RATIONALS``   ``flint.fmpq``, ``Fraction``, integers      is decided, for these numbers
``BALLS``       ``flint.arb``                               can be refuted, never established
``RESIDUES``    float64 integers below a prime              holds up to a stated error probability
``FLOATS``      float64                                     can be refuted beyond a computed bound
==============  ==========================================  ==========================================

Exact elements decay silently (an object array divided by an integer sum is float64), so every comparison asks the
domain whether it contains what it is given: see :meth:`Domain.foreign`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from iha_theory.residues import Residues

__all__ = [
    "BALLS",
    "DOMAINS",
    "FLOATS",
    "INTEGERS",
    "POLYNOMIALS",
    "RATIONALS",
    "RESIDUES",
    "Domain",
    "Residues",
    "as_fraction",
    "object_array",
    "to_float",
]


#: Bits of precision of the balls.
BALL_BITS = 128
flint.ctx.prec = BALL_BITS


@dataclass(frozen=True)
class Domain:
    """A kind of scalar: its name, the element it lifts a number to, and what it contains.

    ``exact`` says whether an equality of two elements is decided; ``division`` whether elements can be divided.
    """

    name: str
    exact: bool
    division: bool
    element: Callable[[Any], Any]
    contains: Callable[[Any], bool]

    def array(self, values: Any) -> np.ndarray:
        """The numbers of ``values`` (nested lists or an array) as an array of this domain, same shape."""
        if self is FLOATS:
            return to_float(values)
        values = object_array(values)
        return elementwise(self.element, values)

    def foreign(self, array: np.ndarray) -> tuple[int, ...] | None:
        """The index of the first element that the domain does not contain, or None when all belong to it."""
        if array.dtype != object:
            return None if self.contains(array) or array.size == 0 else (0,) * array.ndim
        for index, element in np.ndenumerate(array):
            if not self.contains(element):
                return index
        return None


def object_array(values: Any) -> np.ndarray:
    """``values`` as an object array; elements that are themselves iterable (polynomials) stay elements."""
    if isinstance(values, np.ndarray):
        return values.astype(object)
    if not isinstance(values, list | tuple):
        array = np.empty((), dtype=object)
        array[()] = values
        return array
    parts = [object_array(value) for value in values]
    if not parts:
        return np.empty((0,), dtype=object)
    shapes = {part.shape for part in parts}
    if len(shapes) != 1:
        raise ValueError(f"ragged array: rows of shapes {sorted(shapes)}; give rows of one length")
    array = np.empty((len(parts), *shapes.pop()), dtype=object)
    for index, part in enumerate(parts):
        array[index] = part if part.ndim else part[()]
    return array


def elementwise(function: Callable[[Any], Any], array: np.ndarray) -> np.ndarray:
    """``function`` of every element, as an object array of the same shape.

    ``np.frompyfunc`` would do, but it reports floating-point flags that the function's own imports and C code raise.
    """
    result = np.empty(array.shape, dtype=object)
    for index, value in np.ndenumerate(array):
        result[index] = function(value)
    return result


def as_fraction(value: Any) -> Fraction:
    """The exact value of an integer, rational or double as a ``Fraction``; TypeError for anything else."""
    if isinstance(value, flint.fmpq):
        return Fraction(int(value.p), int(value.q))
    if isinstance(value, flint.fmpz):
        return Fraction(int(value))
    if isinstance(value, int | Fraction | float | np.integer | np.floating):
        return Fraction(value.item() if isinstance(value, np.generic) else value)
    raise TypeError(f"{type(value).__name__} has no exact rational value; got {value!r}")


def to_float(values: Any) -> np.ndarray:
    """``values`` as float64; an exact element is rounded once, to the nearest double."""
    array = values if isinstance(values, np.ndarray) else object_array(values)
    if array.dtype != object:
        return np.asarray(array, dtype=np.float64)
    return np.asarray([_nearest_double(value) for value in array.ravel()], np.float64).reshape(array.shape)


def _nearest_double(value: Any) -> float:
    try:
        return float(as_fraction(value))
    except OverflowError:
        raise ValueError("a number is too large for float64; use exact means, or smaller numbers") from None


def _integer(value: Any) -> flint.fmpz:
    fraction = as_fraction(value)
    if fraction.denominator != 1:
        raise ValueError(f"{fraction} is no integer; use the rationals")
    return flint.fmpz(fraction.numerator)


def _rational(value: Any) -> flint.fmpq:
    if isinstance(value, flint.fmpq):
        return value
    fraction = as_fraction(value)
    return flint.fmpq(fraction.numerator, fraction.denominator)


def _ball(value: Any) -> flint.arb:
    return value if isinstance(value, flint.arb) else flint.arb(_rational(value))


def _polynomial(value: Any) -> Any:
    if is_polynomial(value):
        return value
    raise TypeError(f"a number enters a polynomial ring through that ring, not alone; got {value!r}")


def is_polynomial(value: Any) -> bool:
    """Whether ``value`` is an element of a sympy polynomial ring or of its field of fractions (sympy not imported)."""
    return type(value).__module__ in ("sympy.polys.rings", "sympy.polys.fields")


def _one_of(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds) and not isinstance(value, bool)


def _is_float(value: Any) -> bool:
    if isinstance(value, Residues):
        return False
    return isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.dtype == np.float64)


POLYNOMIALS = Domain("polynomials", True, False, _polynomial, is_polynomial)
INTEGERS = Domain("integers", True, False, _integer, _one_of(int, flint.fmpz))
RATIONALS = Domain("rationals", True, True, _rational, _one_of(int, flint.fmpz, flint.fmpq, Fraction))
BALLS = Domain("balls", False, True, _ball, _one_of(flint.arb))
RESIDUES = Domain("residues", False, False, _integer, lambda value: isinstance(value, Residues))
FLOATS = Domain("floats", False, True, float, _is_float)

DOMAINS: dict[str, Domain] = {d.name: d for d in (POLYNOMIALS, INTEGERS, RATIONALS, BALLS, RESIDUES, FLOATS)}


def domain_of(arrays: Iterable[np.ndarray]) -> Domain:
    """The smallest of integers and rationals that contains every element; ValueError if neither does."""
    arrays = list(arrays)
    for domain in (INTEGERS, RATIONALS):
        if all(domain.foreign(array) is None for array in arrays):
            return domain
    raise ValueError("the entries are neither integers nor rationals")
