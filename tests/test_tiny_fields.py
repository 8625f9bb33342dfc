"""All heads over small fields, enumerated a second time in plain loops; the heads at the limits, by hand."""

from itertools import product

import numpy as np
import pytest

import constructions.tiny_fields as fields_module
from constructions.tiny_fields import ALL_HEADS, TWO_ELEMENTS, TWO_MATRICES, AllHeads
from iha_theory.claims import Theorem
from iha_theory.verification import build, verify


class Two:
    """The field of two elements, 0 and 1."""

    elements = (0, 1)

    @staticmethod
    def add(a, b):
        return a ^ b

    @staticmethod
    def multiply(a, b):
        return a & b


class Four(Two):
    """The field of four elements, 2 being a root of y^2 + y + 1: polynomials of degree below 4 in each variable that
    agree at all its points are equal."""

    elements = (0, 1, 2, 3)

    @staticmethod
    def multiply(a, b):
        carryless = (a if b & 1 else 0) ^ (a << 1 if b & 2 else 0)
        return carryless ^ 0b111 if carryless & 0b100 else carryless


def served_by_loops(field):
    """For each head over two elements with n=2, d=1, the non-zero matrices that some column applies to every x."""
    add, multiply = field.add, field.multiply
    total = []
    points = list(product(field.elements, repeat=2))
    for m in product((0, 1), repeat=9):
        found = set()
        rows = {}
        for x in points:
            hats = [(x[0], 1, 0), (x[1], 0, 1)]
            rows[x] = [[0] * 3, [0] * 3]
            for a in range(2):
                for b in range(2):
                    score = 0
                    for i in range(3):
                        for j in range(3):
                            score = add(score, multiply(multiply(hats[a][i], m[3 * i + j]), hats[b][j]))
                    for i in range(3):
                        rows[x][a][i] = add(rows[x][a][i], multiply(score, hats[b][i]))
        for v in product((0, 1), repeat=3):
            def output(x, v=v, rows=rows):
                sums = [0, 0]
                for a in range(2):
                    for i in range(3):
                        sums[a] = add(sums[a], multiply(rows[x][a][i], v[i]))
                return tuple(sums)

            first, second = output((1, 0)), output((0, 1))
            matrix = (first[0], second[0], first[1], second[1])
            if any(matrix) and all(output(x) == (add(multiply(matrix[0], x[0]), multiply(matrix[1], x[1])),
                                                 add(multiply(matrix[2], x[0]), multiply(matrix[3], x[1])))
                                   for x in points):
                found.add(matrix)
        if found:
            total.append(frozenset(found))
    return total


@pytest.mark.parametrize(("field", "as_functions"), [(Two, True), (Four, False)])
def test_the_enumeration_over_two_elements_agrees_with_plain_loops(field, as_functions):
    found = AllHeads(2, 2, 1, as_functions).served
    assert sorted(map(sorted, found)) == sorted(map(sorted, served_by_loops(field)))


def test_the_multiplication_of_four_elements_is_a_field():
    for a in (1, 2, 3):
        assert sorted(Four.multiply(a, b) for b in range(4)) == [0, 1, 2, 3]
    assert Four.multiply(2, 3) == 1
    assert Four.multiply(2, 2) == 3


def test_how_many_classes_one_head_serves():
    assert AllHeads(3, 2, 1, True).most_classes == 1
    assert AllHeads(2, 2, 1, False).most_classes == 1
    assert AllHeads(2, 2, 1, True).most_classes == 2


def test_heads_serve_several_classes_that_are_not_powers_of_one_matrix():
    assert max(map(len, AllHeads(3, 2, 1, True).served)) > 1


def test_the_classes_of_powers_by_hand():
    """Over three elements: of the swap I and the swap; of [[0,1],[0,0]] itself and I; of 0 and of 2I only I."""
    classes = AllHeads(3, 2, 1, True).power_classes
    identity, swap, shift = (1, 0, 0, 1), (0, 1, 1, 0), (0, 1, 0, 0)
    for wanted in ({identity, swap}, {identity, shift}, {identity}):
        assert frozenset(wanted) in classes
    # [[1,1],[0,1]] has order 3; [[1,1],[1,2]] has order 8, and its fourth power is -I.
    assert frozenset({identity, (1, 1, 0, 1), (1, 2, 0, 1)}) in classes
    assert max(map(len, classes)) == 4


def test_over_two_elements_the_square_is_what_makes_the_head_work():
    instance = build(TWO_ELEMENTS, TWO_ELEMENTS.cases[0])
    assert np.asarray(instance.modulo(2)).tolist() == [[0, 0, 0, 0]] * 4
    # At x = (0, 2) over three elements the column x_0 + x_0^2 + x_1^2 is 1, not 2.
    assert instance.modulo(3).tolist()[2] == [0, 0, 2, 0]


def test_the_claims_hold():
    rows = list(verify([Theorem("fields", "", "", "", (ALL_HEADS, TWO_ELEMENTS, TWO_MATRICES))]))
    assert [row for row in rows if not row.is_expected] == []
    assert len({row.claim for row in rows}) == 8


def test_the_class_of_a_matrix_over_five_elements_is_that_of_its_multiples():
    classes = {fields_module._class(tuple(c * entry % 5 for entry in (0, 2, 1, 4)), 5) for c in (1, 2, 3, 4)}
    assert classes == {(0, 1, 3, 2)}
    assert fields_module._class((0, 0), 5) == (0, 0)


def test_exponents_of_functions_over_five_elements():
    """x^5 = x at every point, and no two of 1, x, ..., x^4 agree at all points."""
    reduced = [AllHeads(5, 2, 1, True)._reduced(exponent) for exponent in range(10)]
    assert reduced == [0, 1, 2, 3, 4, 1, 2, 3, 4, 1]
    assert all(pow(x, e, 5) == pow(x, r, 5) for e, r in enumerate(reduced) for x in range(5))
    assert [AllHeads(5, 2, 1, False)._reduced(exponent) for exponent in range(10)] == list(range(10))
