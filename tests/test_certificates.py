"""A checker refuses what certifies nothing, even if every number in it is right."""

import flint
import pytest

from constructions.power_certificates import (
    Apart,
    Dependence,
    Independence,
    Proportional,
    is_apart,
    is_dependence,
    is_independence,
    is_proportional,
)
from iha_theory.rank import Minor

IDENTITY = flint.fmpz_mat([[1, 0], [0, 1]])
SHEAR = flint.fmpz_mat([[1, 1], [0, 1]])


@pytest.mark.parametrize(("matrix", "x", "rows", "columns", "value"), [
    # [x, Mx] = [[1, 1], [1, 1]]: the minor is 0 indeed, and says nothing.
    (IDENTITY, (1, 1), (0, 1), (0, 1), 0),
    # The same row twice: the minor is 0 again.
    (SHEAR, (0, 1), (1, 1), (0, 1), 0),
    # [x, Mx, M^2 x] = [[0, 1, 2], [1, 1, 1]]: right minors, but not of the first powers, in order.
    (SHEAR, (0, 1), (0, 1), (1, 2), -1),
    (SHEAR, (0, 1), (0, 1), (1, 0), 1),
    (SHEAR, (0, 1), (0, 1), (0, 1), 1),
])
def test_an_independence_that_certifies_nothing_is_refused(matrix, x, rows, columns, value):
    assert not is_independence(matrix, Independence(x, Minor(rows, columns, flint.fmpq(value))))


def test_the_right_independence_is_accepted():
    assert is_independence(SHEAR, Independence((0, 1), Minor((0, 1), (0, 1), flint.fmpq(-1))))
    assert is_independence(SHEAR, Independence((0, 1), Minor((1, 0), (0, 1), flint.fmpq(1))))
    assert is_independence(IDENTITY, Independence((1, 1), Minor((1,), (0,), flint.fmpq(1))))


def test_a_dependence_is_an_identity_of_all_entries():
    # M^2 = 2M - I for the shear; -I + 2M - M^2 has entries that vanish one by one for near misses.
    assert is_dependence(SHEAR, Dependence((flint.fmpq(-1), flint.fmpq(2))))
    for wrong in ((-1, 1), (0, 2), (0, 1), (1, 0)):
        assert not is_dependence(SHEAR, Dependence(tuple(map(flint.fmpq, wrong))))
    three = flint.fmpz_mat([[3]])
    assert is_dependence(three, Dependence((flint.fmpq(3),)))
    assert not is_dependence(three, Dependence((flint.fmpq(2),)))


def test_proportional_and_apart():
    assert is_proportional(2 * IDENTITY, Proportional(3, 1, flint.fmpq(4)))
    assert not is_proportional(2 * IDENTITY, Proportional(3, 1, flint.fmpq(8)))
    assert not is_proportional(SHEAR, Proportional(1, 0, flint.fmpq(1)))
    # I = (1, 0, 0, 1) and M = (1, 1, 0, 1), read row by row.
    assert is_apart(SHEAR, Apart(0, 1, (0, 1)))
    assert is_apart(SHEAR, Apart(0, 1, (3, 1)))
    for places in ((0, 3), (0, 0), (1, 1), (0, 2)):
        assert not is_apart(SHEAR, Apart(0, 1, places))
    assert not is_apart(SHEAR, Apart(1, 1, (0, 1)))
