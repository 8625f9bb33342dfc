"""Theorem 3: literals worked by hand, small cases by brute force, oracles that share no code, wrong layers told apart."""

import json
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constructions import polynomial_filter
from constructions.bank import bank
from constructions.blocks import (
    Cover,
    cheapest_cover,
    expansion_bound,
    full_cover,
    generic_features,
    lifted,
    miss_probability,
    powers,
    symbols,
    tiled_cover,
)
from constructions.filter_routings import SIGNED, chosen_cover
from constructions.oracle import filter_bank
from constructions.theorem_3_polynomial_filter import IHA_BANK
from iha_theory import INTEGERS, RATIONALS, RESIDUES, ceil_sqrt, forward, linear, load_graph
from iha_theory.verification import build
from tests import reference

CASES = json.loads((Path(__file__).parent / "cases" / "polynomial.json").read_text())["cases"]


def outputs(a, x, k, **routing):
    weights = polynomial_filter(a, k, x.shape[1], **routing)
    hat = np.concatenate([x, INTEGERS.array(np.eye(len(a), dtype=int))], axis=1)
    return forward(weights, hat, linear)[:, : k * x.shape[1]], weights


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_worked_banks(case):
    a, x = INTEGERS.array(case["A"]), INTEGERS.array(case["X"])
    bank_of_case = np.concatenate([INTEGERS.array(block) for block in case["bank"]], axis=1)
    output, weights = outputs(a, x, case["k"])
    assert output.tolist() == bank_of_case.tolist()
    assert filter_bank(a, x, case["k"]).tolist() == bank_of_case.tolist()
    assert weights.sizes["out"] == weights.sizes["pseudo"] == case["heads_iha"]


def test_the_weights_of_k_4_by_hand():
    """A = [[a, b], [c, d]] = [[1, 2], [3, 4]], one feature: H = P = 2, A^2 = [[7, 10], [15, 22]]."""
    weights = polynomial_filter(INTEGERS.array([[1, 2], [3, 4]]), 4, 1)
    assert weights.w_q.tolist() == [
        #   e0  e1        base query m holds A^(2m) below a zero row for the feature
        [[0, 0], [1, 0], [0, 1]],
        [[0, 0], [7, 10], [15, 22]],
    ]
    assert weights.w_k.tolist() == [[[0, 0], [1, 0], [0, 1]], [[0, 0], [1, 3], [2, 4]]]
    assert weights.w_v.tolist() == [[[1, 0], [0, 0], [0, 0]], [[0, 1], [0, 0], [0, 0]]]
    fields = weights.fields()
    # [source][head][pseudo]
    assert fields["alpha_q"].tolist() == [[[1, 0], [0, 0]], [[0, 0], [1, 0]]]
    assert fields["alpha_k"].tolist() == fields["alpha_v"].tolist() == [[[1, 0], [1, 0]], [[0, 1], [0, 1]]]
    # [out][head][pseudo]
    assert fields["collapse"].tolist() == [[[1, 0], [0, 0]], [[0, 0], [1, 0]]]


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 12), st.integers(0, 10**6), st.sampled_from([None, 1, 2, 3]))
def test_every_routing_outputs_the_bank(n, d, k, seed, pseudo_heads):
    source = np.random.default_rng(seed)
    a = INTEGERS.array(source.integers(-3, 4, (n, n)).astype(object))
    x = INTEGERS.array(source.integers(-3, 4, (n, d)).astype(object))
    output, weights = outputs(a, x, k, pseudo_heads=pseudo_heads)
    assert (output == filter_bank(a, x, k)).all()
    assert weights.sizes["pseudo"] <= (pseudo_heads or weights.sizes["out"])


@given(st.integers(1, 3), st.integers(1, 5), st.integers(0, 10**6))
def test_the_transcription_of_the_algorithm_outputs_the_bank_from_these_weights(n, k, seed):
    source = np.random.default_rng(seed)
    a = INTEGERS.array(source.integers(-3, 4, (n, n)).astype(object))
    x = source.integers(-3, 4, (n, 1)).tolist()
    weights = {name: array.tolist() for name, array in polynomial_filter(a, k, 1).fields().items()}
    hat = [row + [int(i == j) for j in range(n)] for i, row in enumerate(x)]
    output = reference.iha(weights, hat, reference.identity_rows)
    columns, rows = [row[0] for row in x], a.tolist()
    for t in range(k):
        assert [row[t] for row in output] == columns
        columns = [sum(rows[i][j] * columns[j] for j in range(n)) for i in range(n)]


def test_walks_are_counted():
    """On an unweighted graph A^t 1 counts the walks of length t; networkx counts them by its own means."""
    import networkx

    graph = networkx.karate_club_graph()
    walks = [networkx.number_of_walks(graph, t) for t in range(6)]
    a = load_graph("karate", weight="none").adjacency
    ones = RATIONALS.array(np.ones((34, 1), dtype=int))
    output, _ = outputs(RATIONALS.array(a), ones, 6)
    nodes = list(graph)
    for t in range(6):
        assert [int(output[i, t].p) for i in range(34)] == [sum(walks[t][node].values()) for node in nodes]


def test_heads_and_pseudo_heads_at_the_edges_of_a_square():
    assert [ceil_sqrt(k) for k in (1, 2, 3, 4, 5, 9, 10, 16, 17, 10**12, 10**12 + 1)] == [
        1, 2, 2, 2, 3, 3, 4, 4, 5, 10**6, 10**6 + 1]
    a = INTEGERS.array([[2]])
    for k in (1, 2, 3, 4, 5, 8, 9, 10):
        _, weights = outputs(a, INTEGERS.array([[1]]), k)
        assert weights.sizes["out"] == ceil_sqrt(k)


def is_cover(cover):
    """Whether the rank-one matrices sum to ones, summed entry by entry."""
    heads, blocks = cover.g.shape
    return all(sum(cover.c[i][row] * cover.g[i][column] for i in range(heads)) == 1
               for row in range(heads) for column in range(blocks))


@pytest.mark.parametrize(("heads", "pseudo", "blocks"), [(4, 2, 4), (6, 2, 4), (6, 3, 6), (9, 3, 9), (8, 2, 4),
                                                        (7, 4, 7), (5, 3, 5)])
def test_tiled_covers(heads, pseudo, blocks):
    cover = tiled_cover(heads, blocks, pseudo)
    assert is_cover(cover)
    assert cover.pseudo_heads == pseudo < heads
    assert (cover.heads, cover.columns) == (heads, blocks)


def test_a_tiling_with_too_many_rectangles_is_refused():
    for heads, blocks, pseudo in ((3, 3, 2), (2, 2, 1), (5, 5, 2), (8, 8, 2)):
        with pytest.raises(ValueError, match=f"P={pseudo} pseudo-heads: .* rectangles for H={heads} heads"):
            tiled_cover(heads, blocks, pseudo)


@given(st.integers(1, 200), st.integers(1, 6))
def test_the_cheapest_cover_has_the_fewest_heads_that_a_tiling_allows(k, pseudo):
    cover = cheapest_cover(k, pseudo)
    assert is_cover(cover)
    assert cover.heads * cover.columns >= k
    assert cover.pseudo_heads <= pseudo
    for heads in range(1, cover.heads):
        for blocks in range(1, heads + 1):
            tiles = -(-heads // pseudo) * -(-blocks // pseudo)
            assert heads * blocks < k or tiles > heads


def test_the_signed_cover_and_what_is_no_cover():
    assert is_cover(SIGNED)
    assert (SIGNED.heads, SIGNED.columns, SIGNED.pseudo_heads) == (3, 3, 2)
    assert any(isinstance(value, Fraction) for value in SIGNED.c.flat)
    with pytest.raises(ValueError, match="do not sum to the all-ones matrix"):
        Cover(SIGNED.c, SIGNED.g * 2)
    with pytest.raises(ValueError, match=r"Cover: c has shape \(2, 2\) and g \(3, 3\)"):
        Cover(full_cover(2).c, SIGNED.g)


def test_no_cover_by_rectangles_of_three_heads_and_two_pseudo_heads():
    """Every cell is covered once: 9 cells by 3 rectangles of at most 4 cells, all searched by brute force."""
    subsets = [s for s in product((0, 1), repeat=3) if 0 < sum(s) <= 2]
    rectangles = [tuple(a * b for a in c for b in g) for c in subsets for g in subsets]
    assert not any(all(x + y + z == 1 for x, y, z in zip(*three, strict=True))
                   for three in product(rectangles, repeat=3))


def test_the_builder_refuses_bad_input():
    a = INTEGERS.array([[1, 2], [3, 4]])
    for k, d in ((0, 1), (-1, 1), (1, 0)):
        with pytest.raises(ValueError, match=f"got k={k}, d={d}; wanted k >= 1 powers and d >= 1 features"):
            polynomial_filter(a, k, d)
    for shape in ((2, 3), (2,), (0, 0)):
        with pytest.raises(ValueError, match="wanted a square one"):
            polynomial_filter(np.ones(shape), 2, 1)
    with pytest.raises(ValueError, match="the cover has 2 x 2 blocks, but k=5 are wanted"):
        polynomial_filter(a, 5, 1, cover=full_cover(2))
    with pytest.raises(ValueError, match="pseudo-heads: got 0, wanted at least 1"):
        chosen_cover(4, 0)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 40), st.data())
def test_one_evaluation_at_the_generic_point_decides_an_affine_identity(rows, columns, bound, data):
    x = generic_features(rows, columns, bound)
    small = st.integers(-bound, bound)
    coefficients = [data.draw(small) for _ in range(rows * columns + 1)]
    value = coefficients[0] + sum(c * int(v) for c, v in zip(coefficients[1:], x.ravel(), strict=True))
    assert (value == 0) == (not any(coefficients))


@given(st.integers(1, 3), st.integers(1, 2), st.integers(1, 5), st.integers(0, 10**6))
def test_the_expansion_bound_bounds_every_coefficient(n, d, k, seed):
    a = RATIONALS.array(np.random.default_rng(seed).integers(-4, 5, (n, n)).astype(object)) / 3
    weights = polynomial_filter(a, k, d)
    bound, denominator = expansion_bound(weights, n)
    for row, column in np.ndindex(n, d):
        x = RATIONALS.array(np.zeros((n, d), dtype=int))
        x[row, column] = x[row, column] + 1
        hat = np.concatenate([x, RATIONALS.array(np.eye(n, dtype=int))], axis=1)
        for value in forward(weights, hat, linear).flat:
            scaled = value * denominator
            assert scaled.q == 1
            assert abs(scaled.p) <= bound


def test_the_error_probability_of_residues():
    assert miss_probability(1, 0) == Fraction(1, 20 * 72586)
    assert miss_probability(2**100 - 1, 5) == Fraction(100, 20 * 72586) + Fraction(5, 2**20)
    instance = bank(lambda a: polynomial_filter(a, 4, 1), domain=RESIDUES, k=4, d=1, n=5, prime=1048583)
    assert 0 < instance.error_probability < Fraction(1, 10**3)


def test_powers_are_powers():
    a = INTEGERS.array([[1, 1], [0, 1]])
    assert [p.tolist() for p in powers(a, 4)] == [[[1, t], [0, 1]] for t in range(4)]
    assert [p.tolist() for p in powers(a, 1)] == [[[1, 0], [0, 1]]]


def test_the_expansion_bound_by_hand():
    """A = [[1/2]], k = 4, H = P = 2, d = 1: 512 products; W_Q holds 1 and 1/4, W_K 1 and 1/2, all else 0 and 1."""
    weights = polynomial_filter(RATIONALS.array([[Fraction(1, 2)]]), 4, 1)
    products = (2 * 2) ** 3 * 1 * 1 * 2**2 * 2
    assert expansion_bound(weights, 1) == (products * 4 * 2, 4 * 2)
    assert expansion_bound(weights, 5) == (5 * products * 4 * 2, 4 * 2)
    thirds = RATIONALS.array(np.ones((4, 3), dtype=int)) / 3
    assert expansion_bound(weights, 1, thirds) == (4 * products * 4 * 2, 4 * 2 * 3)


def test_a_fraction_enters_a_polynomial_ring_only_over_a_field():
    whole, rational = symbols({"x": (1, 1)})[0]["x"], symbols({"x": (1, 1)}, rational=True)[0]["x"]
    assert lifted([2], whole)[0] == whole[0, 0].ring.one * 2
    assert 2 * lifted([Fraction(3, 2)], rational)[0] == 3
    with pytest.raises(ValueError, match="1/2 is not in the coefficient ring ZZ; use the rationals"):
        lifted([Fraction(3, 2)], whole)


def test_python_integers_of_any_length_are_taken():
    large = 10**30
    weights = polynomial_filter(np.array([[large]], dtype=object), 4, 1)
    assert forward(weights, np.array([[1, 1]], dtype=object), linear)[0].tolist() == [1, large, large**2, large**3]


def test_a_graph_is_normalised_as_its_case_says():
    row, sym = (build(IHA_BANK, case).a for kind in ("row", "sym") for case in IHA_BANK.cases
                if case.parameters.get("normalize") == kind)
    assert set(row.sum(axis=1)) == {1}
    assert np.linalg.norm(sym, 2) == pytest.approx(1)
    assert not np.allclose(sym.sum(axis=1), 1)


def test_a_fraction_is_no_integer():
    with pytest.raises(ValueError, match="^1/2 is no integer; use the rationals$"):
        lifted([Fraction(1, 2)], INTEGERS.array([1]))
