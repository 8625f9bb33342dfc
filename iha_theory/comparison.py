"""The one comparison: two arrays, a relation, and the domain that says what an answer is worth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from iha_theory.claims import Relation, Verdict, Witness
from iha_theory.scalars import BALLS, FLOATS, RATIONALS, RESIDUES, Domain, Residues, object_array

_LONGEST = 60


class Outcome(NamedTuple):
    """A verdict, the place that shows it, and the bound or radius that it was reached with."""

    verdict: Verdict
    witness: Witness | None = None
    remark: str = ""


def compare(relation: Relation, left: Any, right: Any, domain: Domain, bound: Any = None) -> Outcome:
    """Judge ``left`` relation ``right``, element by element.

    Args:
        left, right: arrays of one shape, nested lists or single scalars; a single scalar on one side is compared with
            every element of the other.
        domain: the domain that every element must belong to.
        bound: for floats, the largest |left - right| that rounding can explain, element by element.

    Returns:
        HOLDS or FAILS where the domain decides; AGREES where an equality was only not refuted; OPEN where nothing was
        decided. A failed ``=``, ``<`` or ``≤`` and a ``≠`` that holds carry a witness.

    Raises:
        ValueError: shapes differ, nothing to compare, a float that is no number, floats without a bound.
        TypeError: an element outside the domain.
    """
    left, right = _side(left), _side(right)
    for name, side in (("left", left), ("right", right)):
        if (index := domain.foreign(side)) is not None:
            raise TypeError(f"{name} side, index {index}: {type(side[index]).__name__} is none of the {domain.name}")
    if left.shape != right.shape and left.ndim and right.ndim:
        raise ValueError(f"left side has shape {left.shape}, right side {right.shape}; compare arrays of one shape")
    if not left.size or not right.size:
        raise ValueError(f"nothing to compare: shapes {left.shape} and {right.shape}")
    left, right = np.broadcast_arrays(left, right, subok=True)
    if domain is RATIONALS:
        # flint's rationals and Python's do not subtract from one another.
        left, right = RATIONALS.array(left), RATIONALS.array(right)
    if domain is FLOATS:
        return _floats(relation, left, right, bound)
    if domain is BALLS:
        return _balls(relation, left, right)
    if domain is RESIDUES:
        if relation not in (Relation.EQUAL, Relation.DIFFERENT):
            raise TypeError("residues are not ordered; compare them with = or ≠")
        if left.prime != right.prime:
            raise TypeError(f"residues modulo {left.prime} against residues modulo {right.prime}")
        left, right = (object_array(np.asarray(side).astype(int)) for side in (left, right))
    return _exact(relation, left, right)


def _side(value: Any) -> np.ndarray:
    if isinstance(value, Residues | np.ndarray) and value.dtype.kind in "Of":
        return value
    if isinstance(value, float):
        return np.asarray(value, dtype=np.float64)
    return object_array(value)


def _witness(index: tuple[int, ...], left: Any, right: Any) -> Witness:
    def text(value: Any) -> str:
        shown = str(value)
        return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST - 3]}..."

    return Witness(tuple(int(i) for i in index), text(left[index]), text(right[index]))


def _exact(relation: Relation, left: np.ndarray, right: np.ndarray) -> Outcome:
    parts = {
        Relation.EQUAL: lambda a, b: a - b != 0,
        Relation.DIFFERENT: lambda a, b: a - b != 0,
        Relation.AT_MOST: lambda a, b: not a <= b,
        Relation.LESS: lambda a, b: not a < b,
    }[relation]
    found = next((index for index in np.ndindex(left.shape) if parts(left[index], right[index])), None)
    witness = None if found is None else _witness(found, left, right)
    if relation is Relation.DIFFERENT:
        return Outcome(Verdict.FAILS if witness is None else Verdict.HOLDS, witness)
    return Outcome(Verdict.HOLDS if witness is None else Verdict.FAILS, witness)


def _balls(relation: Relation, left: np.ndarray, right: np.ndarray) -> Outcome:
    pairs: list[tuple[tuple[int, ...], Any, Any]] = [(i, left[i], right[i]) for i in np.ndindex(left.shape)]
    radius = max(max(float(a.rad()), float(b.rad())) for _, a, b in pairs)
    remark = f"radius {radius:.1e}"
    if not np.isfinite(radius):
        raise ValueError("a ball without a finite radius decides nothing; raise the precision")
    apart = next((index for index, a, b in pairs if not a.overlaps(b)), None)
    strict = relation is Relation.LESS
    refuted = next((index for index, a, b in pairs if (a >= b if strict else a > b)), None)
    certain = all(a < b if strict else a <= b for _, a, b in pairs)
    return _decided(relation, left, right, apart, refuted, certain, remark)


def _floats(relation: Relation, left: np.ndarray, right: np.ndarray, bound: Any) -> Outcome:
    if bound is None:
        raise ValueError("floats are compared only within a computed bound; the claim gives none")
    bound = np.broadcast_to(np.asarray(bound, dtype=np.float64), left.shape)
    for name, side in (("left side", left), ("right side", right), ("bound", bound)):
        if not np.isfinite(side).all():
            raise ValueError(f"{name}: not a finite number at index {tuple(np.argwhere(~np.isfinite(side))[0])}")
    gap = left - right
    remark = f"largest difference {np.abs(gap).max():.1e}, bound {bound.max():.1e}"
    certain = bool((gap < -bound).all())
    return _decided(relation, left, right, _first(np.abs(gap) > bound), _first(gap > bound), certain, remark)


def _first(marks: np.ndarray) -> tuple[int, ...] | None:
    return tuple(np.argwhere(marks)[0]) if marks.any() else None


def _decided(relation: Relation, left: np.ndarray, right: np.ndarray, apart: tuple[int, ...] | None,
             refuted: tuple[int, ...] | None, certain: bool, remark: str) -> Outcome:
    """The outcome where numbers are known up to a bound: what is seen decides, what is not seen leaves it open.

    Args:
        apart: where the sides surely differ. refuted: where an order is surely broken. None for nowhere.
        certain: whether an order surely holds everywhere.
    """
    place, unseen, seen = {
        Relation.EQUAL: (apart, Verdict.AGREES, Verdict.FAILS),
        Relation.DIFFERENT: (apart, Verdict.OPEN, Verdict.HOLDS),
    }.get(relation, (refuted, Verdict.HOLDS if certain else Verdict.OPEN, Verdict.FAILS))
    return Outcome(unseen, None, remark) if place is None else Outcome(seen, _witness(place, left, right), remark)
