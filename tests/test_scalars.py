"""The domains lift numbers exactly and notice what does not belong to them; residues are arithmetic modulo a prime."""

from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iha_theory.residues import PRIME_COUNT, Residues, is_prime, random_primes
from iha_theory.scalars import (
    BALLS,
    DOMAINS,
    FLOATS,
    INTEGERS,
    POLYNOMIALS,
    RATIONALS,
    as_fraction,
    domain_of,
    object_array,
    to_float,
)

P = 1048583


def test_numbers_are_lifted_exactly():
    assert RATIONALS.array([[1, Fraction(1, 3)], [0.5, flint.fmpz(2)]]).tolist() == [
        [flint.fmpq(1), flint.fmpq(1, 3)], [flint.fmpq(1, 2), flint.fmpq(2)]]
    assert INTEGERS.array([2.0, np.int64(3)]).tolist() == [2, 3]
    assert FLOATS.array([Fraction(1, 3), 2]).tolist() == [1 / 3, 2.0]
    assert BALLS.array([Fraction(1, 3)])[0].contains(flint.fmpq(1, 3))
    assert float(BALLS.array([Fraction(1, 3)])[0].rad()) < 2.0**-120
    with pytest.raises(ValueError, match="1/3 is no integer; use the rationals"):
        INTEGERS.array([Fraction(1, 3)])
    with pytest.raises(TypeError, match="has no exact rational value"):
        RATIONALS.array(["1/3"])
    with pytest.raises(TypeError, match="enters a polynomial ring through that ring"):
        POLYNOMIALS.array([1])


def test_doubles_are_their_exact_values():
    assert as_fraction(0.1) == Fraction(3602879701896397, 36028797018963968)
    assert as_fraction(np.float64(0.5)) == Fraction(1, 2)
    assert as_fraction(np.int64(7)) == 7
    assert to_float([Fraction(1, 10)])[0] == 0.1


def test_a_foreign_element_is_found():
    assert RATIONALS.foreign(object_array([[1, 2], [3, 0.5]])) == (1, 1)
    assert RATIONALS.foreign(np.array([[0.5]])) == (0, 0)
    assert FLOATS.foreign(np.array([[0.5]])) is None
    assert INTEGERS.foreign(np.array([1, 2])) == (0,)
    assert INTEGERS.foreign(object_array([])) is None


def test_the_smallest_exact_domain_is_found():
    assert domain_of([INTEGERS.array([1])]) is INTEGERS
    assert domain_of([INTEGERS.array([1]), RATIONALS.array([1])]) is RATIONALS
    with pytest.raises(ValueError, match="neither integers nor rationals"):
        domain_of([np.array([0.5])])


def test_the_domains_say_what_they_decide():
    assert {name for name, domain in DOMAINS.items() if domain.exact} == {"polynomials", "integers", "rationals"}
    assert set(DOMAINS) == {"polynomials", "integers", "rationals", "balls", "residues", "floats"}


arrays = st.lists(st.lists(st.integers(-(10**12), 10**12), min_size=3, max_size=3), min_size=3, max_size=3)


@given(arrays, arrays)
def test_residues_add_multiply_and_contract_modulo_the_prime(left, right):
    a, b = np.array(left, dtype=object), np.array(right, dtype=object)
    x, y = Residues(a, P), Residues(b, P)
    for found, wanted in ((x + y, a + b), (x - y, a - b), (x * y, a * b), (x @ y, a @ b), (-x, -a),
                          (x + 5, a + 5), (3 * x, a * 3), (np.einsum("ij,kj->ik", x, y), a @ b.T),
                          (np.einsum("ij,jk->ki", x, y), (a @ b).T), (np.einsum("ij,kl->iljk", x, y),
                                                                     np.einsum("ij,kl->iljk", a, b))):
        assert isinstance(found, Residues)
        assert found.prime == P
        assert (np.asarray(found) == (wanted % P).astype(float)).all()
    assert (np.concatenate([x, y], axis=1) == np.concatenate([a, b], axis=1) % P).all()
    assert ((x == y) == ((a - b) % P == 0)).all()


def test_rationals_have_residues():
    third = Residues(np.array([Fraction(1, 3), flint.fmpq(-1, 2)], dtype=object), P)
    assert np.asarray(third * 6).tolist() == [2.0, P - 3.0]
    with pytest.raises(ValueError, match="has no residue modulo"):
        Residues(np.array([Fraction(1, P)], dtype=object), P)


def test_long_inner_products_stay_exact():
    n = 3 * 2**13 + 5
    ones = np.full((1, n), P - 1)
    product = Residues(ones, P) @ Residues(ones.T, P)
    assert int(product[0, 0]) == n % P
    batched = np.einsum("bij,bjk->bik", Residues(np.stack([ones] * 2), P), Residues(np.stack([ones.T] * 2), P))
    assert np.asarray(batched).ravel().tolist() == [n % P] * 2


def test_rows_that_pick_one_row_need_no_reduction_and_all_others_do():
    right = np.array([[P - 1, 5], [7, P - 2], [1, 1]])
    for left in ([[0, 1, 0], [1, 0, 0], [0, 0, 0]], [[1, 1, 0], [0, 0, 1], [0, 0, 0]], [[2, 0, 0], [0, 0, 0], [0, 0, 0]],
                 [[P - 1, 1, 0], [0, 0, 0], [0, 0, 0]]):
        product = Residues(np.array(left), P) @ Residues(right, P)
        wanted = (np.array(left, dtype=object) @ right.astype(object)) % P
        assert (np.asarray(product) == wanted.astype(float)).all()


def test_residues_refuse_what_they_cannot_serve():
    x = Residues(np.array([[1, 2]]), P)
    with pytest.raises(TypeError, match="residues do not serve exp"):
        np.exp(x)
    with pytest.raises(TypeError, match="residues do not serve add.reduce"):
        x.sum()
    with pytest.raises(TypeError, match=r"residues of one prime are wanted; got primes \[1048583, 1048589\]"):
        _ = x + Residues(np.array([[1, 2]]), 1048589)
    with pytest.raises(TypeError, match="made from integers or rationals; got dtype float64"):
        Residues(np.array([0.5]), P)
    with pytest.raises(TypeError, match="contract two arrays at a time; got 3"):
        np.einsum("ij,ij,ij->ij", x, x, x)


def test_primes_are_prime_and_counted():
    sieve = np.ones(1 << 21, dtype=bool)
    sieve[:2] = False
    for d in range(2, 1449):
        sieve[d * d :: d] = False
    assert int(sieve[1 << 20 :].sum()) == PRIME_COUNT
    assert [n for n in range(100) if is_prime(n)] == np.flatnonzero(sieve[:100]).tolist()
    drawn = random_primes(20, seed=1)
    assert all(sieve[p] and p >= 1 << 20 for p in drawn)
    assert drawn == random_primes(20, seed=1) != random_primes(20, seed=2)
