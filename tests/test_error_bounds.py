"""The bounds of rounding and of the error of residues: neither too small nor slack."""

import dataclasses
from fractions import Fraction

import pytest

import constructions.bank as bank_module
import constructions.bound_report as bounds_module
from constructions.bound_report import bound_report
from constructions.filter_mutants import untransposed, without_last_head
from constructions.oracle import filter_bank
from constructions.sample_matrices import sample
from iha_theory import FLOATS, POLYNOMIALS, RATIONALS, RESIDUES
from iha_theory.claims import Verdict
from tests.planted import PRIMES, graph, instance_of, verdict


def gamma(operations):
    """What that many roundings can do: m u / (1 - m u), u = 2^-53."""
    return Fraction(operations, 2**53) / (1 - Fraction(operations, 2**53))


def test_the_rounding_bound_is_sound_and_tight_within_a_factor_of_three(tmp_path):
    """Positive numbers only: the layer on absolute values is the target itself."""
    x = RATIONALS.array([[3], [1]])
    found, instance = instance_of(FLOATS, None, k=4, d=1, graph=graph(tmp_path, [[1, 2], [3, 4]]), features=x)
    # The inner products on the way: query, key and value sum over 3 inputs and 2 base heads each; the state over 2 tokens
    # and 2 pseudo-heads; the scores over 2 key entries; the collapse over 2 heads and 2 pseudo-heads. One rounding for
    # each of the 7 weights and 3 inputs of a product, and for the target.
    operations = 3 * (3 + 2) + 2 * 2 + 2 + 2 * 2 + 7 + 3 + 1
    for bound, target in zip(instance.rounding.flat, instance.target.flat, strict=True):
        assert gamma(operations) * Fraction(target) <= Fraction(bound) <= 3 * gamma(operations) * Fraction(target)
    for share, wanted in ((5, Verdict.FAILS), (Fraction(1, 2), Verdict.AGREES), (0, Verdict.AGREES)):
        w_v = instance.weights.w_v.copy()
        w_v[0, 0, 0] *= float(1 + share * gamma(operations))
        wrong = dataclasses.replace(instance, weights=dataclasses.replace(instance.weights, w_v=w_v))
        assert verdict(found, wrong) is wanted, share


def missed(height, degree):
    """How likely a wrong layer passes at one prime.

    At most log2(height) / 20 of the primes above 2^20, of which there are 73586 less a thousand, divide a coefficient;
    modulo the others a polynomial of that degree vanishes with probability at most degree / 2^20.
    """
    return Fraction(height.bit_length(), 20 * 72586) + Fraction(degree, 2**20)


def test_the_error_probability_of_a_random_matrix_by_hand():
    """n = 5, d = 1, k = 4, so H = L = P = 2.

    A product chooses a base head (2) and an input (6) for each of query, key and value, two key entries or tokens (5),
    two pseudo-heads (2) and a head (2). With A all ones a power up to the fourth has entries of at most 5^4; output and
    target count twice. The degree is 4 in A, and three inputs may be features.
    """
    _, instance = instance_of(RESIDUES, PRIMES[0], k=4, d=1, n=5)
    terms = (2 * 6) ** 3 * 5**2 * 2**2 * 2
    assert instance.error_probability == missed(2 * terms * 5**4, 4 + 3)


def test_the_error_probability_of_a_given_matrix_by_hand(tmp_path):
    """n = 2, d = 1, k = 9, so H = L = P = 3; row sums up to 21/4 < 6 and denominators 4; only X is random."""
    _, instance = instance_of(RESIDUES, PRIMES[0], k=9, d=1, graph=graph(tmp_path, [[0, 3], [-5, 0.25]]))
    terms = (3 * 3) ** 3 * 2**2 * 3**2 * 3
    assert instance.error_probability == missed(2 * terms * (6 * 4) ** 9, 3)


def recorded(monkeypatch, module):
    """The (height, degree) pairs that the module's error probabilities are computed from."""
    pairs = []
    monkeypatch.setattr(module, "miss_probability", lambda *pair: pairs.append(pair) or Fraction(1, 1000))
    return pairs


def test_wrong_layers_stay_below_the_height_and_the_degree_of_a_random_matrix(monkeypatch):
    pairs = recorded(monkeypatch, bank_module)
    instance_of(RESIDUES, PRIMES[0], k=4, d=1, n=2)
    ((height, degree),) = pairs
    _, symbolic = instance_of(POLYNOMIALS, None, k=4, d=1, n=2, seed=0)
    reached = 0
    for wrong in (untransposed, without_last_head):
        instance = wrong(symbolic)
        for difference in (instance.output - instance.target).flat:
            for exponents, coefficient in difference.terms():
                assert abs(int(coefficient)) <= height
                assert sum(exponents) <= degree
                reached = max(reached, sum(exponents))
    assert reached == 4


def test_the_powers_of_a_given_matrix_stay_below_the_height(monkeypatch, tmp_path):
    given = graph(tmp_path, [[9, 8.5], [7, 6]])
    pairs = recorded(monkeypatch, bank_module)
    instance_of(RESIDUES, PRIMES[0], k=9, d=1, graph=given)
    pairs_of_bounds = recorded(monkeypatch, bounds_module)
    monkeypatch.setattr(bounds_module, "_EXACT_WORK", 0)
    bound_report(given.adjacency, 9)
    largest = filter_bank(given.adjacency, RATIONALS.array([[1], [1]]), 9)[:, 8].max()
    for height, degree in (*pairs, *pairs_of_bounds):
        assert height >= largest * 2**8
        assert degree >= 1
    assert len(pairs) == len(pairs_of_bounds) == 1


def test_the_height_of_the_bounds_by_hand(monkeypatch):
    """swap, k = 4, n = 2: 4 heads of width 1; row sums below 2 to the power 4k; the coefficients are 0 and 1."""
    pairs = recorded(monkeypatch, bounds_module)
    monkeypatch.setattr(bounds_module, "_EXACT_WORK", 0)
    bound_report(sample("swap"), 4)
    assert pairs == [(2 * (4 * 3) ** 3 * 2 * 2 * 4**3 * 2**16, 3)]


def test_an_error_probability_of_mixing_weights_beyond_one_is_refused():
    _, instance = instance_of(RESIDUES, PRIMES[0])
    weights = dataclasses.replace(instance.weights, alpha_v=instance.weights.alpha_v * 2)
    with pytest.raises(ValueError, match="^residues: the error probability is known for mixing weights of 0 and 1"):
        bank_module._error(weights, None, 4, 2)
