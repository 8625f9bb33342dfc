"""One head that approaches [x, Ax]: the error falls as the weights grow, and is never zero."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from matplotlib.figure import Figure

from constructions.border_rank import border_errors
from constructions.least_heads import CONVENTIONS
from constructions.power_structure import Powers
from constructions.shifts import cyclic
from figures.style import LOOKS, canvas
from iha_theory.scalars import RATIONALS, as_fraction

CLAIMS = ("Lower bounds/border", "Lower bounds/border-never", "Lower bounds/border-falls",
          "Lower bounds/border-positive", "Lower bounds/border-product", "Lower bounds/one-width-heads")

TOKENS = 3


@dataclass(frozen=True)
class Data:
    """At each eps the largest weight and the largest error of one head; the least heads that are exact, and theirs.

    ``exact_weight`` is the largest weight of a built layer with the least heads.
    """

    n: int
    weight: tuple[Fraction, ...]
    error: tuple[Fraction, ...]
    least: int
    exact_weight: Fraction


def data() -> Data:
    """The errors in exact rationals, the least heads from the powers of the same matrix."""
    rows = border_errors(TOKENS)
    shift = cyclic(TOKENS, RATIONALS.array(np.zeros((1, 1), dtype=int)))
    powers, convention = Powers(shift, 2), CONVENTIONS["one-width"]
    exact = convention.meets(powers, shift, 1).weights
    largest = max(abs(as_fraction(entry)) for array in exact.fields().values() for entry in array.flat)
    return Data(TOKENS, tuple(row.weight for row in rows), tuple(row.error for row in rows), convention.least(powers),
                largest)


def draw(data: Data) -> Figure:
    """One panel, both axes logarithmic."""
    figure = canvas(f"A small residual refutes no bound: one head comes as near to [x, Ax] as its weights are large, "
                    f"yet exactly it takes {data.least}", height=4.4)
    axes = figure.subplots()
    axes.plot([float(value) for value in data.weight], [float(value) for value in data.error],
              **LOOKS["mha"].both_with(label=f"one head: error × weight = {data.error[0] * data.weight[0]}"))
    axes.plot([], [], " ", label=f"{data.least} heads, off this scale: error 0, largest weight {data.exact_weight}")
    axes.set(xscale="log", yscale="log", xlabel="largest absolute weight", ylabel="largest error, x in {−1, 0, 1}$^N$",
             title=f"A: the cyclic shift of N = {data.n} tokens, one feature")
    axes.legend(loc="upper right")
    return figure
