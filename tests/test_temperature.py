"""Softmax at a finite temperature in place of hard attention: the formula and its exact threshold."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from constructions import cyclic_shifts, cyclic_shifts_mha
from constructions.shifts import with_positions
from constructions.temperature import least_base, warm_output
from iha_theory import RATIONALS, ceil_sqrt, forward, softmax
from tests import reference
from tests.shifted_tokens import column, fractions


@pytest.mark.parametrize("base", [Fraction(7, 2), Fraction(1, 3), Fraction(1)])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_the_transcription_of_the_algorithm_outputs_the_finite_temperature_formula(n, base):
    tokens = [3 * i * i - 7 for i in range(n)]
    lists = {name: fractions(array) for name, array in cyclic_shifts(n).fields().items()}
    x = fractions(with_positions(column(*tokens)))
    rows = reference.iha(lists, x, lambda scores: reference.power_rows(scores, base))
    total = sum(tokens)
    wanted = [[tokens[(i + c) % n] + Fraction(total - n * tokens[(i + c) % n]) / (base + n - 1)
               for c in range(ceil_sqrt(n) ** 2)] for i in range(n)]
    assert rows == wanted
    assert fractions(warm_output(column(*tokens), ceil_sqrt(n) ** 2, RATIONALS.element(base))) == wanted


def test_the_threshold_by_hand():
    """N = 2, D = 2: b = 3. Tokens 0, 2: x_0 reads 2/(b+1): 1/2 at b = 3, below it above."""
    assert least_base(2, 2) == 3
    for base, first in ((3, Fraction(1, 2)), (4, Fraction(2, 5)), (2, Fraction(2, 3))):
        output = forward(cyclic_shifts_mha(2), with_positions(column(0, 2)), softmax(base=base))
        assert fractions(output)[0][0] == first
    assert least_base(9, 4) == 56


def test_rounding_in_floating_point_above_and_below_the_threshold():
    """The same in float64: N = 9, tokens 0 and 4, b = 56 plus and minus 1, gain log(b) on the queries."""
    layer = cyclic_shifts(9)
    arrays = {name: array.astype(float) for name, array in layer.fields().items()}
    tokens = np.array([0.0] + [4.0] * 8)
    x = np.concatenate([tokens[:, None], np.eye(9)], axis=1)
    for base, recovered in ((57.0, True), (55.0, False)):
        output = forward(replace(layer, **arrays), x, softmax(beta=np.log(base)))
        assert (np.round(output[0]) == tokens).all() == recovered
