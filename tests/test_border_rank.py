"""One head that comes close to two powers: the head by hand, its error by plain loops, and the table."""

from fractions import Fraction
from itertools import product

import flint
import numpy as np
import pytest

from constructions.border_rank import BORDER_ERRORS, BORDER_RANK, border_errors, border_head
from iha_theory import RATIONALS
from iha_theory.claims import Case, Theorem
from iha_theory.scalars import as_fraction
from iha_theory.verification import build, verify
from tests import reference


def swap_head(eps):
    """A the swap of two tokens, z all ones, g = 1, c = e_0."""
    a, ones, unit = (RATIONALS.array(m) for m in ([[0, 1], [1, 0]], [[1], [1]], [[1], [0]]))
    return border_head(a, ones, RATIONALS.element(1), unit, RATIONALS.element(eps))


def test_the_weights_for_a_swap_by_hand():
    head = swap_head(Fraction(1, 5))
    assert head.w_q[0].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    # Columns of W_K are the rows of the scores: eps c^T for the feature, then A - I.
    assert head.w_k[0].tolist() == [[0, 0, 0], [flint.fmpq(1, 5), -1, 1], [0, 1, -1]]
    assert head.w_v[0].tolist() == [[0, 1], [5, 5], [5, 5]]


@pytest.mark.parametrize("eps", [Fraction(1), Fraction(-2, 3), Fraction(1, 1000)])
def test_the_output_of_the_swap_head_by_loops(eps):
    head = swap_head(eps)
    weights = {name: [[[as_fraction(v) for v in row] for row in m] for m in array]
               for name, array in head.fields().items()}
    for x in product((-3, 0, 2), repeat=2):
        hat = [[Fraction(x[0]), Fraction(1), Fraction(0)], [Fraction(x[1]), Fraction(0), Fraction(1)]]
        assert reference.mha(weights, hat, reference.identity_rows) == [
            [x[0], x[1] + eps * x[0] * x[0]], [x[1], x[0] + eps * x[0] * x[1]]]


def test_the_table_by_hand():
    assert border_errors(3, [Fraction(1), Fraction(1, 10), Fraction(1, 1000)]) == [
        (1, 1, 1), (Fraction(1, 10), 10, Fraction(1, 10)), (Fraction(1, 1000), 1000, Fraction(1, 1000))]
    assert [row.eps for row in border_errors()] == [Fraction(1, 10**i) for i in range(7)]


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="eps is 0; the limit is no layer"):
        swap_head(0)
    with pytest.raises(ValueError, match="eps is 0"):
        border_errors(2, [Fraction(0)])
    with pytest.raises(ValueError, match="got n=1, wanted at least 2 tokens"):
        border_errors(1)


def test_a_broken_premise_is_named():
    section = BORDER_RANK
    case = Case("planted", RATIONALS, section.cases[0].scope, {"n": 2})
    instance = build(section, case)
    met = [premise.is_met(instance) for premise in section.premises]
    assert met == [True, True]
    object.__setattr__(instance, "z", instance.z + 1)
    assert [premise.is_met(instance) for premise in section.premises] == [False, False]


def test_the_claims_hold():
    rows = list(verify([Theorem("border", "", "", "", (BORDER_RANK, BORDER_ERRORS))]))
    assert [row for row in rows if not row.is_expected] == []
    assert len({row.claim for row in rows}) == 5
    assert np.isfinite([float(row.error) for row in border_errors()]).all()
