"""The systems that Gröbner bases judge: known layers solve the possible ones, and equations written by hand agree."""

import numpy as np
import pytest
from sympy import QQ, groebner, symbols

from constructions.small_impossible import (
    CORNER,
    CYCLE,
    IDENTITY,
    ONE_HEAD,
    ONE_IHA_HEAD,
    PROJECTED_HEADS,
    SHEAR,
    SWAP,
    TWICE,
    one_head,
    one_iha_head,
    projected_heads,
)
from iha_theory import POLYNOMIALS
from iha_theory.claims import Theorem
from iha_theory.verification import verify


def at(system, **arrays):
    """The values of the system's equations where its unknowns are these arrays, and t is 1."""
    point = {"t": 1} | {f"{name}{i}_{j}": value for name, array in arrays.items()
                        for (i, j), value in np.ndenumerate(np.atleast_2d(array))}
    ring = system.equations[0].ring
    pairs = [(generator, point[str(symbol)]) for generator, symbol in zip(ring.gens, ring.symbols, strict=True)]
    return [int(equation.evaluate(pairs)) for equation in system.equations]


def test_the_head_that_serves_two_matrices_solves_its_system_and_a_neighbour_does_not():
    system = one_head(domain=POLYNOMIALS, wanted=(CORNER, SHEAR), possible=True)
    score = np.array([[0, 0, 1], [1, 0, 0], [0, 0, 0]])
    assert not any(at(system, score=score, value=[[0, 1, 0], [0, 0, 1]]))
    assert any(at(system, score=score, value=[[0, 1, 0], [0, 1, 1]]))


def test_one_head_solves_the_system_of_a_multiple_of_the_identity():
    system = one_head(domain=POLYNOMIALS, wanted=(IDENTITY, TWICE))
    score = np.diag([0, 1, 1])
    assert not any(at(system, score=score, value=[[1, 0, 0], [2, 0, 0]]))


def test_an_unknown_matrix_leaves_only_the_condition_unmet():
    """The head that applies I twice: with A = I all equations hold but that A[0,1] t = 1."""
    system = one_head(domain=POLYNOMIALS, wanted=(IDENTITY, lambda a: a[0, 1]))
    found = at(system, score=np.diag([0, 1, 1]), value=[[1, 0, 0], [1, 0, 0]])
    assert [value for value in found if value] == [-1]
    met = one_head(domain=POLYNOMIALS, wanted=(IDENTITY, lambda a: a[0, 0]))
    assert not any(at(met, score=np.diag([0, 1, 1]), value=[[1, 0, 0], [1, 0, 0]]))


def test_known_layers_solve_the_systems_of_projected_heads_and_of_iha():
    two = projected_heads(domain=POLYNOMIALS, wanted=(IDENTITY, SWAP), heads=2, n=2, features=(0, 1))
    assert not any(at(two, operator=[*IDENTITY, *SWAP], projection=np.eye(2, dtype=int)))
    three = projected_heads(domain=POLYNOMIALS, wanted=CYCLE, heads=3, n=3, features=(0, 1, 2))
    assert not any(at(three, operator=[row for matrix in CYCLE for row in matrix], projection=np.eye(3, dtype=int)))
    assert len(three.equations) == 27
    iha = one_iha_head(domain=POLYNOMIALS, wanted=(IDENTITY, TWICE), pseudo_heads=2)
    one = [[1, 0]]
    assert not any(at(iha, operator=IDENTITY, value=[[1, 0, 0], [2, 0, 0]], alpha_q=one, alpha_k=one, alpha_v=one,
                      collapse=one))


def test_the_equations_of_one_projected_head_by_hand_and_the_public_groebner_agree():
    """E m_0 = I and E m_1 = A, entry by entry; E and m unknown."""
    for matrix, expected in ((SWAP, [1]), (TWICE, None)):
        system = projected_heads(domain=POLYNOMIALS, wanted=(IDENTITY, matrix), heads=1, n=2, features=(0, 1))
        e = symbols("operator0_0 operator0_1 operator1_0 operator1_1")
        m = symbols("projection0_0 projection0_1")
        by_hand = [m[c] * e[2 * row + token] - target[row][token] for c, target in enumerate((IDENTITY, matrix))
                   for row in range(2) for token in range(2)]
        assert {equation.as_expr() for equation in system.equations} == set(by_hand)
        basis = groebner(by_hand, *e, *m, domain=QQ, order="grevlex")
        assert (basis.exprs == [1]) == (expected == [1])
        assert (system.basis.tolist() == [1]) == (expected == [1])


@pytest.mark.parametrize("feature", [0, 1])
def test_a_token_without_features_leaves_its_equations_out(feature):
    system = projected_heads(domain=POLYNOMIALS, wanted=(IDENTITY, SWAP), heads=1, n=2, features=(feature,))
    used = {str(s) for equation in system.equations for s in equation.as_expr().free_symbols}
    assert used == {f"operator0_{feature}", f"operator1_{feature}", "projection0_0", "projection0_1"}


def test_the_claims_hold():
    rows = list(verify([Theorem("small", "", "", "", (ONE_HEAD, PROJECTED_HEADS, ONE_IHA_HEAD))]))
    assert [row for row in rows if not row.is_expected] == []
    assert len(rows) == 15
    assert len({row.claim for row in rows}) == 6
