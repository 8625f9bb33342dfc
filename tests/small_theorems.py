"""What the tests of judging share: theorems about one number, and rows of evidence."""

import dataclasses
from fractions import Fraction

import numpy as np

from iha_theory.claims import (
    Case,
    Claim,
    Evidence,
    Means,
    Relation,
    Scope,
    Section,
    Theorem,
    Verdict,
)
from iha_theory.residues import Residues
from iha_theory.scalars import INTEGERS


@dataclasses.dataclass(frozen=True)
class Number:
    value: object
    error_probability: Fraction = Fraction(0)


def number(*, domain, value, prime=0):
    if prime:
        return Number(Residues(np.array([value]), prime), Fraction(1, 1000))
    return Number(domain.array([value]))


IS_FOUR = Claim("four", "the number is four", Relation.EQUAL, lambda i: i.value,
                lambda i: Residues(np.array([4]), i.value.prime) if isinstance(i.value, Residues) else
                (i.value - i.value) + 4, bound=lambda i: 0.25)


def section(*cases, claims=(IS_FOUR,), **more):
    return Section("numbers", number, cases, claims, **more)


def theorem(*sections, number="7"):
    return Theorem(number, "Numbers", "§0", "Four is four.", sections)


def case(value, domain=INTEGERS, scope=Scope.INPUT, **more):
    return Case(f"value={value}", domain, scope, {"value": value, **more})


def row(verdict, expect=Verdict.HOLDS, scope=Scope.SIZE, means=Means.EXACT, **more):
    return Evidence("7", more.pop("claim", "four"), "says", "=", "n=1", scope, means, verdict, expect, **more)
