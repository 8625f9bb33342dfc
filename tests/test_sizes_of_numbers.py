"""How large the numbers of an exact check can become, by hand: the point that decides for every X, and the memory."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import constructions.bank_cases as bank_cases
from constructions.bank import deciding_features
from constructions.bank_cases import requested_banks
from constructions.blocks import expansion_bound, miss_probability
from constructions.theorem_3_polynomial_filter import IHA_BANK
from iha_theory import IHA, INTEGERS, RATIONALS, RESIDUES, Case, Means, Request, Scope, load_graph, multi_head
from iha_theory.verification import build

HALF = Fraction(1, 2)


def layer(pseudo=3):
    """H = 2 base heads, P pseudo-heads, model 3 (one feature, two positions), key 2, value 1; entries up to 5 and 1/2."""
    w_q = RATIONALS.array(np.zeros((2, 3, 2), dtype=int))
    w_q[:, 1:] = RATIONALS.array([[HALF, 3], [0, 1]])
    w_v = RATIONALS.array(np.full((2, 3, 1), 5))
    mixing = RATIONALS.array(np.ones((2, 2, pseudo), dtype=int))
    return IHA(w_q, w_q, w_v, mixing, mixing, mixing, mixing)


def test_the_expansion_bound_by_hand():
    # (2 base heads * 3 rows)^3, 2 tokens, 2 key columns, 3^2 pairs of pseudo-heads, 2 heads; W_Q and W_K are over 2 and at
    # most 6/2, W_V at most 5.
    terms = (2 * 3) ** 3 * 2 * 2 * 3**2 * 2
    assert expansion_bound(layer(), 2) == (terms * 6 * 6 * 5, 4)
    assert expansion_bound(layer(1), 2) == (terms // 9 * 6 * 6 * 5, 4)
    # A projection of 2 rows with entries up to 7/3.
    projection = RATIONALS.array([[Fraction(7, 3), 0], [1, Fraction(1, 3)]])
    assert expansion_bound(layer(), 2, projection) == (terms * 6 * 6 * 5 * 2 * 7, 12)


@pytest.mark.parametrize("projected", [False, True])
def test_the_deciding_features_are_powers_of_a_base_above_the_bound(projected):
    """Row sums of A below 3 (5/2, rounded up), over 2: the scaled difference is below 3 (bound 2^2 + denominator 6^2)."""
    a = RATIONALS.array([[HALF, 2], [0, 1]])
    projection = RATIONALS.array([[7, 0], [1, 1]]) if projected else None
    bound, denominator = expansion_bound(layer(), 2, projection)
    base = 2 * (bound * 2**2 + denominator * (3 * 2) ** 2) + 2
    assert deciding_features(layer(), a, 3, 1, projection).tolist() == [[base], [base**2]]


def test_features_that_are_read_decide_nothing():
    one = INTEGERS.array(np.ones((1, 3, 1), dtype=int))
    with pytest.raises(ValueError, match="one generic X decides only for queries and keys that read positions"):
        deciding_features(multi_head(one, one, one), INTEGERS.array([[0, 1], [1, 0]]), 2, 1)


def sizes(k, d, n):
    return {"source": k, "head": k, "out": k, "pseudo": 1, "model": d + n, "key": n, "value": d}


@pytest.mark.parametrize(("means", "matrix", "needed"), [
    # 4 heads, n = d = 2: 3 * 4 * 4 * 2 + 4 * 16 weights, and 2 * 8 * (2 + 2) entries of pseudo-heads, in all 224.
    # Row sums below 6, denominators 4: 4 (5 + 3) bits; an entry has 72 bytes and a 16th of the bits, and the features'
    # 2 (8 + 24 + 8) multiples have 4 * 2 * 32 bits.
    (Means.EXACT, [[0, 3], [-5, 0.25]], 224 * (72 + 2) + 80 * 256 // 8),
    # Row sums below 7, integers: 4 * 3 bits.
    (Means.EXACT, [[0, 3], [-5, 1]], 224 * 72 + 80 * 96 // 8),
    # Numbers of floats are made exactly: an entry has an eighth of the bits.
    (Means.FLOAT, [[0, 3], [-5, 0.25]], 224 * (72 + 4)),
    # A random matrix has row sums of at most 9 n = 18: 4 * 5 bits.
    (Means.FLOAT, None, 224 * (72 + 2)),
    (Means.RESIDUE, None, 224 * 8),
])
def test_the_memory_of_a_case_by_hand(means, matrix, needed, tmp_path, monkeypatch):
    asked: dict[str, Any] = {"n": 2}
    if matrix is not None:
        np.save(tmp_path / "g.npy", np.array(matrix))
        asked = {"graph": load_graph(tmp_path / "g.npy")}
    request = Request(k=4, means=means, **asked)
    monkeypatch.setattr(bank_cases, "MEMORY_LIMIT", needed)
    assert len(requested_banks(request, sizes)) == 1
    monkeypatch.setattr(bank_cases, "MEMORY_LIMIT", needed - 1)
    with pytest.raises(ValueError, match="GiB"):
        requested_banks(request, sizes)


def test_the_error_of_residues_counts_every_block_that_is_built():
    """k = 5 has H = L = P = 3, so that the layer holds nine powers; a random A of n = 2, d = 1."""
    case = Case("planted", RESIDUES, Scope.SIZE, {"n": 2, "d": 1, "k": 5, "primes": (1048583,)})
    instance = build(IHA_BANK, case)
    height = 2 * (3 * 3) ** 3 * 2**2 * 3**2 * 3 * 2**9
    assert instance.error_probability == miss_probability(height, 9 + 3)
