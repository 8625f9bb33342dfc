"""Theorem 4: literals worked by hand, brute force, the transcription of the algorithm, inputs that must be refused."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constructions import count_matches, counting_mlp, counting_relu_mlp, cyclic_shifts, cyclic_shifts_mha
from constructions.blocks import Cover
from constructions.counting import divides, filled_up, relu
from constructions.counting_pipeline import PIPELINE, substituted, telling_inputs
from constructions.cpm3 import (
    count_by_definition,
    count_by_histogram,
    detects_every_swap,
    is_order_sensitive,
    is_symmetric,
)
from constructions.cpm3_request import Asked, asked
from constructions.shifts import cyclic, first_of_ties, generic_tokens, with_positions, workspace
from constructions.shorter_sequences import SHORTER
from constructions.temperature import ROUNDING, least_base, warm_output
from constructions.theorem_4_cpm3 import LAYER, THEOREM
from iha_theory import RATIONALS, Request, ceil_sqrt, forward, hard, softmax, verify
from iha_theory.claims import Means, Verdict
from tests import reference

HALF: Any = 2.5
CASES = json.loads((Path(__file__).parent / "cases" / "cpm3.json").read_text())["cases"]


def column(*tokens):
    return RATIONALS.array(np.array(tokens, dtype=object).reshape(-1, 1))


def shifts_of(weights, *tokens):
    return forward(weights, with_positions(column(*tokens)), hard)


def fractions(array) -> Any:
    """The nested lists of an array, as Fractions."""
    if isinstance(array, np.ndarray):
        return [fractions(part) for part in array]
    return Fraction(int(array.p), int(array.q))


def brute_force(tokens, modulus, coefficient):
    counts = []
    for i in range(len(tokens)):
        hits = 0
        for j1 in range(len(tokens)):
            for j2 in range(len(tokens)):
                if (tokens[i] + coefficient * tokens[j1] + tokens[j2]) % modulus == 0:
                    hits += 1
        counts.append(hits)
    return counts


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"M={c['M']}-G={c['G']}-N_max={c['N_max']}-{len(c['x'])}")
def test_the_worked_cases(case):
    x, modulus, coefficient = case["x"], case["M"], case["G"]
    assert count_matches(x, case["N_max"], modulus, coefficient) == case["count"]
    assert count_by_definition(x, modulus, coefficient) == case["count"]
    assert count_by_histogram(x, modulus, coefficient) == case["count"]
    assert brute_force(x, modulus, coefficient) == case["count"]
    assert is_order_sensitive(x, modulus, coefficient) == case["order_sensitive"]


def test_the_weights_of_n_4_by_hand():
    """S has ones at (0,1), (1,2), (2,3), (3,0); S^2 at (0,2), (1,3), (2,0), (3,1). H = P = 2."""
    weights = cyclic_shifts(4)
    assert weights.w_q.tolist() == [
        #   p0 p1 p2 p3     a zero row for the token, then S^0 and S^2
        [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        [[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]],
    ]
    assert weights.w_k.tolist() == [
        #                   a zero row for the token, then the transposes of S^0 and S^1
        [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        [[0, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]],
    ]
    #                       the token times H into coordinate m
    assert weights.w_v.tolist() == [[[2, 0], *[[0, 0]] * 4], [[0, 2], *[[0, 0]] * 4]]
    mixing = weights.fields()
    # [source][head][pseudo]
    assert mixing["alpha_q"].tolist() == [[[1, 0], [0, 0]], [[0, 0], [1, 0]]]
    assert mixing["alpha_k"].tolist() == mixing["alpha_v"].tolist() == [[[1, 0], [1, 0]], [[0, 1], [0, 1]]]
    # [out][head][pseudo]
    assert mixing["collapse"].tolist() == [[[1, 0], [0, 0]], [[0, 0], [1, 0]]]


def test_the_workspace_of_n_4_by_hand():
    assert shifts_of(cyclic_shifts(4), 1, 2, 3, 4).tolist() == [
        [1, 2, 3, 4],
        [2, 3, 4, 1],
        [3, 4, 1, 2],
        [4, 1, 2, 3],
    ]
    assert shifts_of(cyclic_shifts(4, shift=cyclic(4).T), 1, 2, 3, 4)[0].tolist() == [1, 4, 3, 2]


def test_columns_beyond_the_tokens_start_over():
    """N = 3, H = 2: four columns, the last one as the first."""
    assert shifts_of(cyclic_shifts(3), 5, 7, 11).tolist() == [[5, 7, 11, 5], [7, 11, 5, 7], [11, 5, 7, 11]]
    assert shifts_of(cyclic_shifts(2), 5, 7).tolist() == [[5, 7, 5, 7], [7, 5, 7, 5]]
    assert shifts_of(cyclic_shifts(1), 5).tolist() == [[5]]


def test_multi_head_attention_by_hand():
    weights = cyclic_shifts_mha(2)
    assert weights.w_q.tolist() == [[[0, 0], [1, 0], [0, 1]], [[0, 0], [0, 1], [1, 0]]]
    assert weights.w_k.tolist() == [[[0, 0], [1, 0], [0, 1]]] * 2
    assert weights.w_v.tolist() == [[[1], [0], [0]]] * 2
    assert not weights.is_mixed
    assert shifts_of(weights, 5, 7).tolist() == [[5, 7], [7, 5]]


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=6), st.sampled_from([None, 1, 2, 3]))
def test_the_transcription_of_the_algorithm_outputs_the_shifts_from_these_weights(tokens, pseudo_heads):
    weights = cyclic_shifts(len(tokens), pseudo_heads=pseudo_heads)
    lists = {name: fractions(array) for name, array in weights.fields().items()}
    x = fractions(with_positions(column(*tokens)))
    rows = reference.iha(lists, x, lambda scores: reference.hard_rows(scores, Fraction(1)))
    n = len(tokens)
    assert [row[:n] for row in rows] == [[tokens[(i + c) % n] for c in range(n)] for i in range(n)]
    assert fractions(shifts_of(weights, *tokens)) == rows


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=5))
def test_the_transcription_of_multi_head_attention_outputs_the_shifts(tokens):
    lists = {name: fractions(array) for name, array in cyclic_shifts_mha(len(tokens)).fields().items()}
    rows = reference.mha(lists, fractions(with_positions(column(*tokens))),
                         lambda scores: reference.hard_rows(scores, Fraction(1)))
    n = len(tokens)
    assert rows == [[tokens[(i + c) % n] for c in range(n)] for i in range(n)]


@pytest.mark.parametrize(("n", "pseudo_heads", "heads"), [(12, 2, 4), (16, 2, 4), (25, 3, 5), (30, 3, 6), (3, 1, 3)])
def test_fewer_pseudo_heads_than_heads(n, pseudo_heads, heads):
    weights = cyclic_shifts(n, pseudo_heads=pseudo_heads)
    assert (weights.sizes["out"], weights.sizes["pseudo"]) == (heads, pseudo_heads)
    assert shifts_of(weights, *range(n))[0, :n].tolist() == list(range(n))


def test_a_signed_cover_routes_hard_attention_too():
    half = Fraction(1, 2)
    cover = Cover(np.array([[0, 1, half], [1, 0, half], [-1, 1, 0]], dtype=object),
                  np.array([[0, 2, 1], [2, 0, 1], [1, -1, 0]], dtype=object))
    weights = cyclic_shifts(9, cover=cover)
    assert (weights.sizes["out"], weights.sizes["pseudo"]) == (3, 2)
    tokens = [1, 4, 9, 16, 25, 36, 49, 64, 81]
    assert shifts_of(weights, *tokens).tolist() == [[tokens[(i + c) % 9] for c in range(9)] for i in range(9)]


def test_the_generic_tokens_by_hand():
    """N = 2, P = 1: H P sources = 4, lcm(1, 2) = 2, coefficients below 2 * 5, base 2 * 10 + 2."""
    assert generic_tokens(cyclic_shifts(2, pseudo_heads=1)).tolist() == [[22], [22**2]]
    # N = 4, H = P = 2, values up to 2: 8 * 2 = 16, lcm(1, ..., 8) = 840, base 2 * 840 * 17 + 2
    assert generic_tokens(cyclic_shifts(4))[:2].tolist() == [[28562], [28562**2]]


def test_what_a_request_asks_for():
    assert asked(Request(n=3)) == Asked(3, 5, 12, None)
    assert asked(Request(modulus=3, pseudo_heads=2)) == Asked(4, 3, 8, 2)
    assert asked(Request(n=25, k=3, coefficient=1)) == Asked(25, 5, 1, None)
    assert asked(Request(n=3, means=Means.EXACT)) == Asked(3, 5, 12, None)
    for other in (Request(), Request(n=3, k=2), Request(k=2), Request(n=3, means=Means.FLOAT)):
        assert asked(other) is None


def test_one_wrong_entry_does_not_pass_at_the_generic_tokens():
    weights = cyclic_shifts(5, pseudo_heads=2)
    tokens = generic_tokens(weights)
    x, target = with_positions(tokens), workspace(tokens, weights.sizes["out"] * weights.sizes["value"])
    assert (forward(weights, x, hard) == target).all()
    for name in ("w_v", "alpha_v", "collapse"):
        array = getattr(weights, name)
        place = tuple(np.argwhere(array != 0)[0])
        for wrong in (array[place] + 1, -array[place]):
            changed = array.copy()
            changed[place] = wrong
            assert (forward(replace(weights, **{name: changed}), x, hard) != target).any()


def test_the_first_of_ties_is_read():
    q = k = RATIONALS.array(np.zeros((1, 1, 3, 1), dtype=object))
    v = RATIONALS.array(np.array([4, 5, 6], dtype=object).reshape(1, 1, 3, 1))
    assert first_of_ties(q, k, v).ravel().tolist() == [4, 4, 4]
    assert hard(q, k, v).ravel().tolist() == [5, 5, 5]


def test_the_mlp_by_hand():
    """Two tokens, G = 7: the units are the pairs of columns (0,0), (0,1), (1,0), (1,1)."""
    mlp = counting_mlp(2, 3, 7, width=2)
    assert mlp.w_1.tolist() == [[9, 8, 2, 1], [0, 1, 7, 8]]
    assert mlp.w_2.tolist() == [[1]] * 4
    assert counting_mlp(2, 3, 7).w_1.tolist() == [[9, 8, 2, 1], [0, 1, 7, 8], [0] * 4, [0] * 4]
    # tokens 1, 2: 9 and 17, 16, 24 at position 0, of which 3 divides 9 and 24
    assert mlp.hidden(np.array([1, 2], dtype=object)).tolist() == [9, 10, 16, 17]
    assert mlp(np.array([1, 2], dtype=object)).tolist() == [1]
    assert (mlp.units, mlp.parameters) == (4, 12)


def test_the_relu_network_by_hand():
    """One token up to 2, M = 2, G = 1: s = 3x <= 6, bumps at 0, 2, 4, 6."""
    mlp: Any = counting_relu_mlp(1, 2, 1, 2)
    assert mlp.w_1.tolist() == [[3] * 12]
    assert mlp.b_1.tolist() == [1, 0, -1, -1, -2, -3, -3, -4, -5, -5, -6, -7]
    assert mlp.w_2.ravel().tolist() == [1, -2, 1] * 4
    assert mlp(np.array([[0], [1], [2]], dtype=object)).ravel().tolist() == [1, 0, 1]
    assert (mlp.units, mlp.parameters) == (12, 36)


def test_the_activations():
    assert [divides(3)(s) for s in range(-4, 5)] == [0, 1, 0, 0, 1, 0, 0, 1, 0]
    assert [divides(1)(s) for s in (0, 1, 2)] == [1, 1, 1]
    assert divides(3)(RATIONALS.element(Fraction(13, 4))) == Fraction(3, 4)
    assert divides(3)(RATIONALS.element(6)) == 1
    assert [relu(s) for s in (-2, 0, 5)] == [0, 0, 5]


@pytest.mark.parametrize(("mlp", "tokens"), [
    (counting_mlp(2, 3, 7, width=2), range(3)),
    (counting_relu_mlp(2, 3, 4, 2, width=2), range(3)),
    (counting_relu_mlp(1, 3, 2, 3, width=1), range(4)),
], ids=["modulo", "relu", "relu, one token"])
def test_every_weight_of_the_mlp_is_load_bearing(mlp, tokens):
    """All but the output weights of ReLU units beyond the largest sum, which receive nothing positive."""
    rows = np.array(list(product(tokens, repeat=mlp.w_1.shape[0])), dtype=object)
    counts, idle = mlp(rows).tolist(), set()
    for name in ("w_1", "b_1", "w_2"):
        array: Any = getattr(mlp, name)
        for place in np.ndindex(array.shape) if array is not None else ():
            changed = False
            assert array is not None
            for new in (array[place] + 1, array[place] - 1, 0, -array[place]):
                other = array.copy()
                other[place] = new
                changed |= replace(mlp, **{name: other})(rows).tolist() != counts
            if not changed:
                idle.add((name, place))
    silent = np.flatnonzero((mlp.hidden(rows) <= 0).all(axis=0)) if mlp.b_1 is not None else []
    assert idle == {("w_2", (int(unit), 0)) for unit in silent}


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=7), st.integers(0, 3), st.integers(1, 12),
       st.integers(1, 40))
def test_the_construction_counts_as_brute_force_does(tokens, pads, modulus, coefficient):
    wanted = brute_force(tokens, modulus, coefficient)
    assert count_matches(tokens, len(tokens) + pads, modulus, coefficient) == wanted
    assert count_by_histogram(tokens, modulus, coefficient) == wanted


@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.integers(1, 5), st.integers(0, 9))
def test_the_relu_network_counts_as_brute_force_does(tokens, modulus, coefficient):
    n = len(tokens)
    mlp = counting_relu_mlp(n, modulus, coefficient, 6, width=n)
    assert mlp(workspace(np.array(tokens, dtype=object).reshape(n, 1), n))[:, 0].tolist() == brute_force(
        tokens, modulus, coefficient)


def test_the_relu_network_is_right_up_to_the_largest_token_and_not_beyond():
    mlp = counting_relu_mlp(1, 3, 1, 3)
    assert [int(mlp(np.array([x], dtype=object))[0]) for x in range(6)] == [1, 1, 1, 1, 0, 0]


def test_a_shorter_sequence_filled_up_by_hand():
    """N_max = 4, G = 12, M = 5: tokens times 14, one pad, modulus 70."""
    assert filled_up([1, 2, 3], 4, 5, 12) == ([14, 28, 42, 1], 70)
    assert filled_up([1, 2], 2, 5, 12) == ([14, 28], 70)


def test_filling_up_needs_a_coefficient():
    assert count_matches([0, 0], 2, 3, 0) == [4, 4]
    with pytest.raises(ValueError, match=r"2 tokens are fewer than n_max=3.*coefficient G of at least 1"):
        count_matches([0, 0], 3, 3, 0)


@pytest.mark.parametrize("modulus", range(1, 13))
def test_when_order_matters(modulus):
    for g in range(modulus):
        assert is_symmetric(modulus, g) == (g % modulus == 1 % modulus)
        assert detects_every_swap(modulus, g) == (gcd(g - 1, modulus) == 1)


def test_order_in_the_paper_and_beside_it():
    assert is_symmetric(5, 11)
    assert not is_symmetric(5, 13)
    assert not is_order_sensitive([1, 2, 3], 3, 10)
    assert is_order_sensitive([1, 2, 3], 5, 12)
    # M = 6, G = 9: G - 1 = 8 shares a factor with 6, so exchanging 0 and 3 is not seen, exchanging 0 and 1 is
    assert not is_order_sensitive([0, 3], 6, 9)
    assert is_order_sensitive([0, 1], 6, 9)


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


def test_polynomials_are_evaluated_at_integers():
    from sympy import QQ
    from sympy.polys.rings import ring

    _, x, y = ring("x, y", QQ)
    array = np.array([x * x + y / 2, x - x], dtype=object)
    assert substituted(array, np.array([[3, 4], [0, 1]], dtype=object)).tolist() == [[11, 0], [Fraction(1, 2), 0]]


@pytest.mark.parametrize(("call", "message"), [
    (lambda: cyclic_shifts(0), "n_max=0, wanted at least 1 token"),
    (lambda: cyclic_shifts_mha(0), "n_max=0, wanted at least 1 token"),
    (lambda: cyclic_shifts(10, cover=Cover(np.eye(2, dtype=int), np.ones((2, 2), dtype=int))), "2 x 2 blocks, but 10"),
    (lambda: counting_mlp(0, 3, 7), "n=0, wanted an integer of at least 1"),
    (lambda: counting_mlp(2, 0, 7), "modulus M=0, wanted an integer of at least 1"),
    (lambda: counting_mlp(2, 3, -1), "coefficient G=-1, wanted an integer of at least 0"),
    (lambda: counting_mlp(2, HALF, 1), "modulus M=2.5, wanted an integer"),
    (lambda: counting_mlp(3, 3, 7, width=2), "2 columns of the workspace, wanted at least n_max=3"),
    (lambda: counting_relu_mlp(2, 3, 7, -1), "largest token: got -1"),
    (lambda: count_matches([], 3, 5, 11), "tokens: got 0, wanted 1 to n_max=3"),
    (lambda: count_matches([1, 2], 1, 5, 11), "tokens: got 2, wanted 1 to n_max=1"),
    (lambda: count_matches([1, -2], 2, 5, 11), r"tokens\[1\]: got -2, wanted a natural number"),
    (lambda: count_matches([HALF], 1, 5, 11), r"tokens\[0\]: got 2.5, wanted a natural number"),
    (lambda: count_matches([1], 1, 0, 11), "modulus M=0"),
])
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(("options", "message"), [
    ({"n": 0}, "number of tokens n=0, wanted an integer of at least 1"),
    ({"n": 26}, "n=26 is more than the exact check takes; wanted at most 25"),
    ({"modulus": 0}, "modulus M=0, wanted"),
    ({"n": 3, "coefficient": 0}, "coefficient G=0, wanted at least 1"),
    ({"n": 3, "pseudo_heads": 0}, "P=0 pseudo-heads"),
    ({"k": 3}, "no case takes the options given"),
    ({"n": 3, "k": 3}, "no case takes the options given"),
])
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        list(verify([THEOREM], Request(**options)))


def test_broken_premises_are_refused():
    from iha_theory.verification import build

    shorter = replace(SHORTER.cases[0], parameters={**SHORTER.cases[0].parameters, "n": 3})
    with pytest.raises(ValueError, match="the sequence is shorter than N_max"):
        build(SHORTER, shorter)
    without = replace(SHORTER.cases[0], parameters={**SHORTER.cases[0].parameters, "coefficients": (0, 1)})
    with pytest.raises(ValueError, match="the coefficient G is at least 1"):
        build(SHORTER, without)
    longer = replace(LAYER.cases[0], parameters={"n": 3, "tokens": (1, 2)})
    with pytest.raises(ValueError, match="the length N_max that the layer is built for"):
        build(LAYER, longer)


def test_the_worked_cases_show_what_is_expected_and_every_refutation_shows_where():
    rows = list(verify([THEOREM]))
    assert [f"{row.case}: {row.claim}" for row in rows if not row.is_expected] == []
    assert all(row.witness is not None for row in rows if row.verdict is Verdict.FAILS)
    assert {row.claim for row in rows if row.means is not Means.PROOF} == {
        claim.id for section in THEOREM.sections
        for claim in (*section.claims, *(c for e in section.errata for c in (e.printed, *e.corrected)))}
    assert {row.means.name for row in rows} == {"EXACT", "BALL", "PROOF"}


@pytest.mark.parametrize("options", [
    {"n": 12, "modulus": 7, "coefficient": 17},
    {"n": 13, "pseudo_heads": 2},
    *({"n": n, "modulus": m, "coefficient": g} for n in (1, 2, 3) for m in (1, 2, 3) for g in (1, 2, 7)),
    *({"n": n, "pseudo_heads": p} for n in (2, 3, 4, 5) for p in (1, 2, 3)),
])
def test_a_users_sizes_show_what_is_expected(options):
    rows = list(verify([THEOREM], Request(**options)))
    assert [f"{row.case}: {row.claim}" for row in rows if not row.is_expected] == []
    assert {"shifts", "counts"} <= {row.claim for row in rows}


def test_every_residue_means_every_residue():
    from iha_theory.verification import build

    pipeline = build(PIPELINE, PIPELINE.cases[0])
    assert pipeline.inputs.tolist() == [[a, b] for a in range(3) for b in range(3)]
    every_g = build(PIPELINE, next(case for case in PIPELINE.cases if case.name == "N=3, M=4, every G, every residue"))
    assert (len(every_g.inputs), every_g.coefficients) == (64, (9, 10, 11, 12))
    shorter = build(SHORTER, SHORTER.cases[0])
    assert (shorter.n_max, shorter.inputs.tolist()) == (3, [[0, 0], [0, 1], [1, 0], [1, 1]])
    rounding = build(ROUNDING, ROUNDING.cases[0])
    assert (rounding.threshold, rounding.inputs.tolist()) == (3, pipeline.inputs.tolist())


def test_telling_inputs_hold_the_cases_that_matter():
    rows = telling_inputs(4, 7, 40)
    assert rows.shape == (40, 4)
    assert [0, 0, 0, 0] in rows.tolist()
    assert rows.max() >= 10**8
    assert PIPELINE.cases[-1].parameters["inputs"].shape == (24, 9)
