"""The degree argument's identities, against plain loops on integers and interpolation in the scale of X."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import ZZ
from sympy.polys.rings import ring

from constructions.degree_argument import DEGREES, RANK_ONE, generic_column, head_of_scores, part
from iha_theory import INTEGERS, POLYNOMIALS, forward, linear, multi_head
from iha_theory.claims import Theorem
from iha_theory.verification import build, verify


def test_a_part_by_hand():
    _, a, b, c = ring(["a", "b", "c"], ZZ)
    polynomial = a**2 * b + 3 * a * b - 5 * a * c + 7
    assert part(polynomial, [([a], 1)]) == 3 * a * b - 5 * a * c
    assert part(polynomial, [([a], 1), ([b], 0)]) == -5 * a * c
    assert part(polynomial, [([a, b], 3)]) == a**2 * b
    assert part(polynomial, [([a, b, c], 0)]) == 7
    assert part(polynomial, [([a], 4)]) == 0


@pytest.mark.parametrize(("n", "d"), [(2, 1), (3, 2)])
def test_the_parts_add_up_to_the_output(n, d):
    column = generic_column(domain=POLYNOMIALS, n=n, d=d)
    total = sum((column.of_degree(degree) for degree in range(1, 4)), column.of_degree(0))
    assert (total == column.output).all()
    assert all((column.of_degree(degree) != 0).all() for degree in range(4))


def scores(b, c, d, e, x):
    """X B X^T + X C + D X^T + E, entry by entry."""
    n, width = len(x), len(x[0])
    features = range(width)
    return [[sum(x[i][f] * b[f][g] * x[j][g] for f in features for g in features)
             + sum(x[i][f] * c[f][j] for f in features) + sum(d[i][f] * x[j][f] for f in features) + e[i][j]
             for j in range(n)] for i in range(n)]


def column_by_loops(b, c, d, e, v1, v0, x):
    s = scores(b, c, d, e, x)
    values = [sum(x[j][f] * v1[f][0] for f in range(len(x[0]))) + v0[j][0] for j in range(len(x))]
    return [sum(s[i][j] * values[j] for j in range(len(x))) for i in range(len(x))]


def drawn(n, d, seed):
    source = np.random.default_rng(seed)
    shapes = {"b": (d, d), "c": (d, n), "d": (n, d), "e": (n, n), "v1": (d, 1), "v0": (n, 1)}
    return {name: source.integers(-4, 5, shape) for name, shape in shapes.items()}, source.integers(-4, 5, (n, d))


@given(st.integers(1, 3), st.integers(1, 2), st.integers(1, 3), st.integers(0, 10**6))
def test_a_head_of_any_width_is_the_head_of_its_score_matrix(n, d, key, seed):
    source = np.random.default_rng(seed)
    w_q, w_k, w_v = (INTEGERS.array(source.integers(-4, 5, (n + d, width))) for width in (key, key, 2))
    hat = INTEGERS.array(np.concatenate([source.integers(-4, 5, (n, d)), np.eye(n, dtype=int)], axis=1))
    wanted = forward(multi_head(w_q[None], w_k[None], w_v[None]), hat, linear)
    assert (forward(head_of_scores(w_q @ w_k.T, w_v), hat, linear) == wanted).all()


@given(st.integers(1, 3), st.integers(1, 2), st.integers(0, 10**6))
def test_the_formulas_of_the_parts_interpolate_the_head(n, d, seed):
    """The head at 0, X, 2X, 3X determines its four parts; they are what the claims say."""
    w, x = drawn(n, d, seed)
    values = [column_by_loops(**{k: v.tolist() for k, v in w.items()}, x=(t * x).tolist()) for t in range(4)]
    # Six times the inverse of the matrix t^degree, t = 0, ..., 3.
    inverse = [[6, 0, 0, 0], [-11, 18, -9, 2], [6, -15, 12, -3], [-1, 3, -3, 1]]
    found = [[Fraction(sum(inverse[degree][t] * int(values[t][row]) for t in range(4)), 6) for row in range(n)]
             for degree in range(4)]
    mixed = x @ w["c"] + w["d"] @ x.T
    quadratic = x @ w["b"] @ x.T
    formulas = [w["e"] @ w["v0"], mixed @ w["v0"] + w["e"] @ x @ w["v1"], quadratic @ w["v0"] + mixed @ x @ w["v1"],
                quadratic @ x @ w["v1"]]
    assert found == [formula[:, 0].tolist() for formula in formulas]


@given(st.integers(2, 3), st.integers(1, 2), st.integers(0, 10**6))
def test_two_rows_of_a_head_by_differences(n, d, seed):
    """With X zero but for rows a and b, mixed differences of row a single out the terms that the argument uses."""
    w, x = drawn(n, d, seed)
    for a, b in permutations(range(n), 2):
        def row_a(s, t, a=a, b=b):
            y = np.zeros_like(x)
            y[a], y[b] = s * x[a], t * x[b]
            return column_by_loops(**{k: v.tolist() for k, v in w.items()}, x=y.tolist())[a]

        def second(s, row_a=row_a):
            return [row_a(s, t) - row_a(-s, t) for t in (-1, 0, 1)]

        odd = second(1)
        inner = x[b] @ w["v1"][:, 0]
        bilinear = x[a] @ w["b"] @ x[b]
        # Odd in s: s t^2 (...) + s t (...) + terms without t; the second difference in t keeps t^2, the first keeps t.
        assert odd[2] - 2 * odd[1] + odd[0] == 2 * 2 * bilinear * inner
        assert odd[2] - odd[0] == 2 * 2 * (inner * (x[a] @ w["c"][:, b]) + w["v0"][b, 0] * bilinear)
        assert row_a(0, 1) - 2 * row_a(0, 0) + row_a(0, -1) == 2 * inner * (w["d"][a] @ x[b])


def test_a_power_of_a_matrix_that_differs_from_the_identity_by_rank_one_by_hand():
    """v . p = 0: [[3, -1], [4, -1]] = I + (1, 2)(2, -1)^T has the fourth power I + 4 (1, 2)(2, -1)^T."""
    instance = build(RANK_ONE, RANK_ONE.cases[0])
    # p, v, w, g and e, in the ring's order.
    at = list(zip(instance.g.ring.gens, [1, 2, 2, -1, 0, 0, 0, 0], strict=True))

    def numbers(matrix):
        return [[int(entry.evaluate(at)) for entry in row] for row in matrix]

    assert numbers(instance.unipotent) == [[3, -1], [4, -1]]
    assert numbers(instance.power(4)) == numbers(instance.expansion(4)) == [[9, -4], [16, -7]]


def test_the_claims_hold():
    rows = list(verify([Theorem("degrees", "", "", "", (DEGREES, RANK_ONE))]))
    assert [row for row in rows if not row.is_expected] == []
    assert len({row.claim for row in rows}) == 11
