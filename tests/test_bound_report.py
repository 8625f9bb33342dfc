"""What ``bounds`` says of matrices whose powers come round again, vanish or have denominators, by hand."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import constructions.bound_report as bounds_module
from constructions.bank import deciding_features
from constructions.blocks import miss_probability
from constructions.bound_report import bound_report
from constructions.least_heads import CONVENTIONS
from constructions.lower_bounds import MEETING
from constructions.oracle import filter_bank
from constructions.power_structure import Powers
from constructions.sample_matrices import GALLERY, sample
from iha_theory import RATIONALS
from iha_theory.residues import Residues
from iha_theory.verification import build, rounded_up
from tests.sameness import is_same

HALF = Fraction(1, 2)


def report(rows, k):
    return bound_report(RATIONALS.array(rows), k)


def said(found, kind):
    return [certificate["says"] for certificate in found.certificates if certificate["kind"] == kind]


@pytest.mark.parametrize(("b", "c"), list(product((1, -1, 2, HALF, Fraction(-2, 3)), repeat=2)))
def test_powers_that_come_round_with_a_factor_are_held_in_order(b, c):
    """A swaps two tokens with weights b and c: A^2 = bc I, while no power is a multiple of the one before it."""
    found = report([[0, b], [c, 0]], 5)
    assert found.is_sound
    assert [row[1] for row in found.rows] == ["2", "5", "5", "2", "2", "2"]
    assert [row[3] for row in found.rows] == [f"{heads} heads, exactly, for every X" for heads in "255222"]


def test_powers_that_come_round_after_three_steps_with_a_factor():
    found = report([[0, 2, 0], [0, 0, 1], [3, 0, 0]], 7)
    assert found.is_sound
    assert said(found, "class") == ["M^3 = 6 M^0", "M^4 = 6 M^1", "M^5 = 6 M^2", "M^6 = 36 M^0"]


def test_powers_that_vanish():
    found = report([[0, 1, 0], [0, 0, 1], [0, 0, 0]], 5)
    assert found.is_sound
    assert said(found, "class") == ["M^3 = 0", "M^4 = 0"]


def test_powers_that_stand_still():
    found = report([[1, 1], [0, 0]], 4)
    assert found.is_sound
    assert said(found, "class") == ["M^2 = 1 M^1", "M^3 = 1 M^1"]


def test_the_numbers_and_what_the_paper_says():
    assert report([[1, 1], [0, 0]], 5).numbers == {
        "s": "2 of the k = 5 powers are independent", "rho": "2 classes of proportional non-zero powers",
        "tau": "A^2 is a multiple of A^1", "scalar": "A is no multiple of the identity"}
    found = report([[3, 0], [0, 3]], 5)
    assert found.numbers["scalar"] == "A is a multiple of the identity"
    assert report([[1, 1], [0, 1]], 5).numbers["tau"] == "no A^t is a multiple of A^(t-1) for t < 5"
    # k heads of multi-head attention, ceil(sqrt k) of IHA.
    assert [row[4] for row in found.rows] == ["5", "5", "5", "5", "3", "3"]


def kinds(found):
    return [certificate["kind"] for certificate in found.certificates]


def test_the_certificates_of_a_matrix_with_denominators_in_full():
    independence, dependence, *apart = report([[HALF, Fraction(1, 3)], [0, HALF]], 3).certificates
    # M = [[3, 2], [0, 3]] on x = (1, 1) gives (5, 3), and 1 * 3 - 1 * 5 = -2; (M - 3)^2 = 0.
    assert independence == {
        "kind": "independence", "x": [1, 1], "rows": [0, 1], "minor": "-2", "accepted": True,
        "says": "at x, the 2 x 2 minor of [x, Mx, ...] on these rows is not zero, M = 6 A"}
    assert dependence == {"kind": "dependence", "coefficients": ["-9", "6"], "accepted": True,
                          "says": "M^2 is this combination of I, M, ..., M^1"}
    assert [certificate["says"].split(" are")[0] for certificate in apart] == ["M^0 and M^1", "M^0 and M^2", "M^1 and M^2"]


def test_a_common_denominator_that_is_long_is_said_by_its_length():
    [independence, *_] = report([[Fraction(1, 2**100), 1], [0, 0]], 2).certificates
    assert independence["says"].endswith("M = qA, q of 101 bits")
    assert report([[Fraction(1, 10**30 - 1), 1], [0, 0]], 2).certificates[0]["says"].endswith(f"M = {10**30 - 1} A")
    assert report([[1, 1], [0, 0]], 2).certificates[0]["says"].endswith("M = A")


def test_which_certificates_there_are():
    # All k powers independent: that says everything. Else the classes, their representatives apart, neighbours apart.
    assert kinds(report([[0, 1], [1, 0]], 2)) == ["independence"]
    assert kinds(report([[0, 1], [1, 0]], 4)) == ["independence", "dependence", *["class"] * 2, *["apart"] * 3]
    assert kinds(report([[1, 1], [0, 0]], 3)) == ["independence", "dependence", "class", "apart"]
    swap = Powers(RATIONALS.array([[0, 1], [1, 0]]), 4)
    assert [(c.first, c.second) for c in swap.classes_apart()] == [(0, 1)]
    assert [(c.first, c.second) for c in swap.neighbours_apart()] == [(0, 1), (1, 2), (2, 3)]
    assert Powers(swap.a, 2).classes_apart() == Powers(swap.a, 2).neighbours_apart() == ()


def test_places_of_a_minor_that_tells_two_powers_apart():
    found = report([[1, 1], [0, 0]], 3)
    apart = [certificate for certificate in found.certificates if certificate["kind"] == "apart"]
    # I and A differ in direction at entries 0 and 1, read row by row: 1 * 1 - 0 * 1 is not zero.
    assert [certificate["places"] for certificate in apart] == [[0, 1]]


def test_the_error_of_residues_by_hand(monkeypatch):
    monkeypatch.setattr(bounds_module, "_EXACT_WORK", 0)

    def said_of(rows, k):
        return {row[3].partition("error at most ")[2] for row in report(rows, k).rows}

    def missed(height):
        return {rounded_up(miss_probability(height, 3) ** 3)}

    # (k (n + 1))^3 n^2 k^3 terms; row sums below 3, and A^2 = 4 I has the coefficient 4.
    terms = (3 * 3) ** 3 * 4 * 27
    assert said_of([[0, 2], [2, 0]], 3) == missed(2 * terms * 3**12 * 4**2)
    # Half of it: row sums at most 1, common denominator 2, and A^2 = I / 4.
    assert said_of([[0, HALF], [HALF, 0]], 3) == missed(2 * terms * 2**12 * 4**2)


def test_a_report_from_residues_is_the_same_each_time(monkeypatch):
    monkeypatch.setattr(bounds_module, "_EXACT_WORK", 0)
    drawn = []

    def residues(values, prime):
        drawn.append((values, prime))
        return Residues(values, prime)

    monkeypatch.setattr(bounds_module, "Residues", residues)
    for _ in range(2):
        report([[0, 1], [2, 0]], 3)
    assert is_same(drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :])


def test_the_memory_of_a_report_by_hand(monkeypatch):
    """n = 2, k = 3, 8 bytes each: 81 weights and, twice, 6 virtual tokens of 3 features, all twice; 12 entries of powers."""
    needed = 2 * 8 * (81 + 2 * 6 * 3) + 12 * 64
    monkeypatch.setattr(bounds_module, "_MEMORY_LIMIT", needed)
    assert report([[0, 1], [2, 0]], 3).rows
    monkeypatch.setattr(bounds_module, "_MEMORY_LIMIT", needed - 1)
    with pytest.raises(ValueError, match=r"^n=2, k=3: the layers that meet the bounds need about 0.0 GiB, more"):
        report([[0, 1], [2, 0]], 3)


def test_too_much_memory_is_told_in_gibibytes(monkeypatch):
    monkeypatch.setattr(bounds_module, "memory", lambda *_: 3 * 2**30)
    monkeypatch.setattr(bounds_module, "_MEMORY_LIMIT", 5 * 2**30)
    with pytest.raises(ValueError, match=r"need about 6.0 GiB, more than the limit of 5 GiB; take fewer powers or a smaller"):
        report([[0, 1], [2, 0]], 3)


def test_residues_serve_where_exact_numbers_are_too_long(monkeypatch):
    """n = 2, k = 3: 12 bits are two long numbers of 5 beside a short one, and 2 heads take 2 * 2^3 * 3 products of them."""
    monkeypatch.setattr(bounds_module, "_LONG_NUMBER", 5)
    for most, verified in ((47, {"2", "3"}), (48, {"3"}), (72, set())):
        monkeypatch.setattr(bounds_module, "_EXACT_WORK", most)
        assert {row[1] for row in report([[0, 1], [2, 0]], 3).rows if "error at most" in row[3]} == verified


@pytest.mark.parametrize(("number", "says"), [(1, "A"), (2, "2 A"), (10**30 - 1, f"{10**30 - 1} A"),
                                              (10**30, "qA, q of 100 bits")])
def test_a_long_multiple_is_shown_by_its_length(number, says):
    assert bounds_module._multiple(number) == says


@pytest.mark.parametrize(("rows", "k", "height"), [
    ([[0, 2], [2, 0]], 3, 2 * (9**3 * 4 * 27) * 3**12 * 4**2),
    ([[0, HALF], [HALF, 0]], 3, 2 * (9**3 * 4 * 27) * 2**12 * 4**2),
    # A class with its own factor, A^2 = A / 3, and A^2 = 0 I + 1/3 A: row sums at most 1, denominators 3.
    ([[Fraction(1, 3), 0], [0, 0]], 3, 2 * (9**3 * 4 * 27) * 3**12 * 3**2),
    # A^2 = 6 A of all entries 3, A^3 = 36 A.
    ([[3, 3], [3, 3]], 4, 2 * ((4 * 3) ** 3 * 4 * 64) * 7**16 * 36**2),
    # No power is a multiple of another, and A^2 = A + 5 I.
    ([[0, 5], [1, 1]], 3, 2 * (9**3 * 4 * 27) * 6**12 * 5**2),
    ([[5]], 1, 2 * (2**3) * 6**4),
])
def test_the_height_of_output_minus_bank_by_hand(rows, k, height):
    assert bounds_module._height(Powers(RATIONALS.array(rows), k)) == height


def reasons(n, k):
    """Why not fewer heads, for the cyclic shift of n tokens: with columns in order, and with IHA; and the pseudo-heads."""
    found = report(np.roll(np.eye(n, dtype=int), 1, axis=1).tolist(), k)
    return found.rows[1][2], found.rows[4][2], found.notes[0]


@pytest.mark.parametrize(("n", "k", "fewer", "held", "pseudo_heads"), [
    # One head fewer than ceil(sqrt k) holds ceil(k / fewer) powers in its first output head.
    (9, 9, 2, 5, "at least 2, since H P^2 >= s = 9; 2 are known to do (signed)"),
    (16, 16, 3, 6, "at least 2, since H P^2 >= s = 16; 2 are known to do (tiled)"),
    (10, 10, 3, 4, "at least 2, since H P^2 >= s = 10; 2 are known to do (tiled)"),
    # Three blocks of two powers and one of one are three by three, which the signed routing serves.
    (7, 7, 2, 4, "at least 2, since H P^2 >= s = 7; 2 are known to do (signed)"),
    (5, 5, 2, 3, "at least 2, since H P^2 >= s = 5; 2 are known to do (tiled)"),
    # Only two of the five powers are independent.
    (2, 5, 1, 2, "at least 1, since H P^2 >= s = 2; 1 are known to do (R sums the heads)"),
])
def test_why_fewer_heads_do_not_suffice(n, k, fewer, held, pseudo_heads):
    in_order, iha, note = reasons(n, k)
    assert in_order == f"the first {k} powers: neighbours are not proportional"
    assert iha == (f"with {fewer}, head 0 would hold {held} independent powers, but one output head reads "
                   f"{fewer} operators")
    heads = next(h for h in range(1, k + 1) if h * h >= k)
    assert note == f"Pseudo-heads at H = {heads}: {pseudo_heads}: this is the least."


def test_one_head_needs_no_reason():
    assert reasons(1, 1)[:2] == ("at least one head", "at least one head")
    assert reasons(2, 2)[0] == "the first 2 powers: neighbours are not proportional"


def test_the_point_that_decides_counts_the_projection(monkeypatch):
    """Without the projection the bound on the coefficients would be too small, and "for every X" unfounded."""
    given = []
    monkeypatch.setattr(bounds_module, "deciding_features",
                        lambda *arguments: given.append(arguments) or deciding_features(*arguments))
    structure = Powers(sample("two components"), 4)
    for convention in CONVENTIONS.values():
        assert bounds_module._exactly(structure, convention)[1]
    placed = [convention.meets(structure, structure.a, 1) for convention in CONVENTIONS.values()]
    assert sum(layer.projection is not None for layer in placed) == 2
    for (_, _, k, d, projection), layer in zip(given, placed, strict=True):
        assert (k, d) == (4, 1)
        assert projection is None if layer.projection is None else (projection == layer.projection).all()


@pytest.mark.parametrize("section", MEETING, ids=lambda section: section.title)
def test_the_layers_of_the_book_are_judged_at_the_point_that_decides(section):
    for case in section.cases[:4]:
        met, (k, n) = build(section, case), (case.parameters["k"], sample(case.parameters["name"]).shape[0])
        a = case.domain.array(Powers(sample(case.parameters["name"]), k).a)
        assert (met.x[:, :1] == deciding_features(met.weights, a, k, 1, met.placed.projection)).all()
        assert (met.x[:, 1:] == np.eye(n, dtype=int)).all()


@pytest.mark.parametrize("name", CONVENTIONS)
@pytest.mark.parametrize("d", [2, 3])
def test_every_convention_serves_several_features(name, d):
    for matrix, k in (*GALLERY, ("karate", 2)):
        structure = Powers(sample(matrix), k)
        placed = CONVENTIONS[name].meets(structure, structure.a, d)
        features = RATIONALS.array(deciding_features(placed.weights, structure.a, k, d, placed.projection))
        x = np.concatenate([features, RATIONALS.array(np.eye(structure.n, dtype=int))], axis=1)
        assert placed.weights.sizes["out"] == CONVENTIONS[name].least(structure)
        assert (placed.output(x, k * d) == filter_bank(structure.a, features, k)).all()


@pytest.mark.parametrize(("name", "is_so"), [
    ("triple", lambda a, one: (a == 3 * one).all()),
    ("nilpotent", lambda a, one: (a @ a @ a == 0).all() and (a @ a != 0).any()),
    ("transvection", lambda a, one: ((a - one) @ (a - one) == 0).all() and (a != one).any()),
    ("projection", lambda a, one: (a @ a == a).all() and (a != one).any() and (a != 0).any()),
    ("degree 2", lambda a, one: ((a - one) @ (a - 2 * one) == 0).all()),
    ("two components", lambda a, one: (a @ a == one).all() and (a[:2, 2:] == 0).all() and len(a) == 4),
    ("halves", lambda a, one: (2 * a != (2 * a).astype(int)).any() and ((2 * a - one) @ (2 * a - one) == 0).all()),
    ("path", lambda a, one: (a == np.eye(2, k=1, dtype=int)).all()),
])
def test_a_sample_is_what_its_name_says(name, is_so):
    a = np.array([[Fraction(int(v.p), int(v.q)) for v in row] for row in sample(name)], dtype=object)
    assert is_so(a, np.eye(len(a), dtype=int).astype(object))


def test_independent_powers_with_denominators_are_verified_exactly():
    found = report([[HALF, 0], [0, 1]], 2)
    assert found.is_sound
    assert found.rows[0][3] == "2 heads, exactly, for every X"


@pytest.mark.parametrize("pair", [(0, 2), (1, 3), (1, 1)])
def test_proportional_powers_are_not_certified_apart(pair):
    with pytest.raises(ValueError, match=f"powers {pair[0]} and {pair[1]} are proportional"):
        Powers(RATIONALS.array([[0, 1], [1, 0]]), 4).apart(iter([pair]))


@pytest.mark.parametrize("pair", [(1, 2), (2, 1), (2, 3)])
def test_no_power_is_apart_from_zero(pair):
    with pytest.raises(ValueError, match="are proportional"):
        Powers(RATIONALS.array([[0, 1], [0, 0]]), 4).apart(iter([pair]))
