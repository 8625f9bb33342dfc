"""Every number in the figures, from the evidence and the accounts, against one worked by hand."""

from dataclasses import replace
from fractions import Fraction
from math import e, log, sqrt, tanh

import pytest

from tests.drawn_figures import data_of, module


def test_parameters_against_k():
    drawn = module("parameters_against_k")
    data = data_of("parameters_against_k")
    n, d = data.n, data.d
    assert data.mha.k[0] == 16
    assert data.mha.count[0] == 2 * n * (n + d) * 16 + d * (n + d) * 16
    assert data.iha.count[0] == 2 * n * (n + d) * 4 + d * (n + d) * 16 + 4 * 4**3
    assert data.iha_mixing.count[0] == 4 * 4 * 4 * 4
    assert data.tiled_mixing.count[0] == 4 * 4 * 4 * 2
    assert data.tiled.count[0] == data.iha.count[0] - 128
    assert all(k * d < n for k in data.mha.k)
    assert drawn.Curve((1, 10, 100), (3, 300, 30000)).slope == pytest.approx(2)
    assert [round(curve.slope, 1) for curve in (data.mha, data.iha, data.iha_mixing)] == [1.0, 0.5, 1.5]


def test_least_heads():
    data = data_of("least_heads")
    at = {name: [values[k - 1] for k in (1, 4, 25, 26, 49)] for name, values in data.least.items()}
    assert data.independent == 25
    assert at == {"one-width": [1, 4, 25, 26, 49], "projected": [1, 4, 25, 25, 25], "iha": [1, 2, 5, 6, 7],
                  "iha-projected": [1, 2, 5, 5, 5]}
    assert (data.shifts["mha"][9], data.shifts["iha"][9]) == (10, 4)


def test_crossover_map():
    # k = 4, d = 1: H = 2, a = 2, b = 0, (N+1) 4N > 32 from N = 3; k = 16: 24 N (N+1) > 256 from 3, > 128 from 2.
    # k = 5: H = 3, a = 2, b = 4, 4 (N^2 - d^2) > 108 from N = 7 for d = 4 and from 65 for d = 64.
    data = data_of("crossover_map")
    assert data.paper[1][:4] == (None, None, 4, 3)
    assert (data.paper[1][15], data.tiled[1][15]) == (3, 2)
    assert [data.paper[d][4] for d in (4, 64)] == [7, 65]
    assert (data.first, data.never) == (3, (1, 2))


def test_crossover_map_reads_the_first_k_off_the_counts():
    data = data_of("crossover_map")
    changed = {d: (*row[:9], 10**6, *row[10:]) for d, row in data.paper.items()}
    assert replace(data, paper=changed).first == 11


def test_cpm3_parameters():
    data = data_of("cpm3_parameters")
    four = data.n.index(4)
    assert {part: counts[four] for part, counts in data.parts["iha"].items()} == {
        "attention": 2 * 2 * 4 * 5 + 5 * 4 + 4 * 8, "mlp": 4 * 16 + 16, "total": 212, "printed": 37 * 32 + 64}
    assert {part: counts[four] for part, counts in data.parts["mha"].items()} == {
        "attention": 2 * 16 * 5 + 4 * 5, "mlp": 64 + 16, "total": 260, "printed": 256}
    assert data.by_cube(data.parts["mha"]["printed"]) == [4.0] * len(data.n)
    assert (data.missed_from, data.attained) == (5, 2)
    assert data.constant == pytest.approx(10 * sqrt(2))


def test_operator_span():
    data = data_of("operator_span")
    assert data.span == {4: (4, 16, 16, 16, 16, 16), 6: (6, 24, 36, 36, 36, 36), 9: (9, 36, 81, 81, 81, 81)}
    assert data.patterns[9] == (9, 36, 81, 144, 225, 324)
    assert [data.kinds[kind] for kind in ("multi-head", "grouped-query", "multi-query", "talking-heads")] == [
        tuple(range(1, 9))] * 4
    assert data.kinds["IHA, P = 2"] == (1, 4, 9, 16, 20, 24, 28, 32)
    assert data.kinds["IHA, P = H"] == (1, 4, 9, 16, 25, 36, 49, 64)


def test_border_rank():
    # x = (1, 1, 1) errs by eps, the weights reach 1 / eps; two heads take I and the shift.
    data = data_of("border_rank")
    assert data.error[:3] == (1, Fraction(1, 10), Fraction(1, 100))
    assert data.weight[:3] == (1, 10, 100)
    assert (data.n, data.least, data.exact_weight) == (3, 2, 1)


def test_repeated_tokens():
    data = data_of("repeated_tokens")
    one, zero = data.grid.index(1.0), data.grid.index(0.0)
    assert (data.heads[one], data.printed[one], data.line[one], data.printed_token[one]) == (1, 1, 1, 1)
    assert data.corrected[one] == pytest.approx(tanh(1))
    assert data.three[one] == pytest.approx((e - 1 / e) / (e + 1 / e + 1))
    assert data.corrected_token[data.grid.index(-0.5)] == pytest.approx(-0.5 * tanh(0.25))
    assert [data.flat[place][zero] for place in (0, 1, 3)] == pytest.approx([1, 1 / 3, tanh(log(4 / 3) / 2)])


def test_flat_causal():
    data = data_of("flat_causal")
    assert data.worst[2][1] == pytest.approx(3 - 2 * sqrt(2))
    assert data.worst[4][1] == pytest.approx(1 / 3)
    assert [data.worst[count][count] for count in data.worst] == pytest.approx([0] * 16, abs=1e-30)
    # p = 1/2, P = 4, J = 1: 3 (1/4) / (4 - 3/2).
    assert data.against_p[1][data.p.index(0.5)] == pytest.approx(0.3)
    for picked, errors in data.against_p.items():
        assert max(errors) <= data.worst[4][picked] + 1e-12


def test_soft_to_hard():
    data = data_of("soft_to_hard")
    assert data.threshold == {4: 51, 9: 136, 16: 255}
    assert data.measured[4][0] == Fraction(27, 4)
    for n, errors in data.measured.items():
        assert errors == tuple(Fraction(9 * (n - 1), base + n - 1) for base in data.bases)
        assert all((error < Fraction(1, 2)) == (base > data.threshold[n])
                   for error, base in zip(errors, data.bases, strict=True))
        assert tuple(data.curve[n][data.grid.index(base)] for base in data.bases) == errors


def test_worked_examples():
    data = data_of("worked_examples")
    k4, n4 = data.k4, data.n4
    assert {(column, value) for column, value in enumerate(k4.pattern[1, 0]) if value} == {(4, 1), (7, 1)}
    assert {(column, value) for column, value in enumerate(n4.pattern[1, 2]) if value} == {
        (1, Fraction(1, 2)), (6, Fraction(1, 2))}
    assert list(n4.pattern[0, 1]) == [Fraction(1, 8)] * 8
    assert n4.read.tolist() == [[True, False] * 4] * 2
    assert k4.output.tolist() == [[1, 10, 100, 1000], [10, 100, 1000, 0], [100, 1000, 0, 0], [1000, 0, 0, 0]]
    assert n4.output.tolist() == [[1, 2, 3, 4], [2, 3, 4, 1], [3, 4, 1, 2], [4, 1, 2, 3]]


def test_schedule_flops():
    # N = 128, P = 2, W = 16: local 4 (128 16 - 16 15 / 2) = 7712 pairs, global multi-head 128 129 / 2 = 8256.
    data = data_of("schedule_flops")
    pairs = {key: values[0] for key, values in data.ratios["pairs"].items()}
    assert data.n[0] == 128
    assert pairs["mha", 2] == Fraction(4 * 7712 + 8256, 5 * 8256)
    assert pairs["iha", 2] == Fraction(4 * 7712 + 4 * 8256, 5 * 8256)
    assert data.printed == Fraction(3, 5)
    # One token more in the window of a local layer adds at most P^2 N pairs, so the nearest is within half of that.
    for p in (2, 4):
        for n, value in zip(data.n, data.ratios["pairs"]["matched", p], strict=True):
            assert abs(value - 1) <= Fraction(4 * p * p * n, 2) / (5 * Fraction(n * (n + 1), 2))
    # Mixing adds P / d_h of the projections, 2 / 128, in four of five layers.
    size = 2 * 128 * 4 * 2560**2
    whole = 5 * size + Fraction(4 * 2, 128) * size + 2 * 20 * 256 * (4 * 7712 + 8256)
    assert data.ratios["flops"]["mha", 2][0] == whole / (5 * size + 2 * 20 * 256 * 5 * 8256)
