"""Counting: which inputs, residues and coefficients were tried, and what a verdict on them speaks of."""

from itertools import product

import pytest

from constructions import counting_pipeline
from constructions.counting_pipeline import PIPELINE
from constructions.cpm3 import detects_every_swap, is_symmetric
from constructions.order_sensitivity import EXAMPLE_123, Order
from iha_theory import INTEGERS, Request
from iha_theory.claims import Scope
from iha_theory.verification import build


def test_given_inputs_speak_of_themselves_only():
    assert PIPELINE.requested is not None
    scopes = set()
    for n, modulus in (*product(range(1, 10), range(1, 8)), (13, 2)):
        (found,) = PIPELINE.requested(Request(n=n, modulus=modulus))
        wanted = Scope.INPUT if "inputs" in found.parameters else Scope.SIZE
        assert found.scope is wanted, found.name
        if found.scope is Scope.SIZE and modulus**n <= 30:
            tried = {tuple(row) for row in build(PIPELINE, found).inputs}
            assert tried == set(product(range(modulus), repeat=n))
        scopes.add(found.scope)
    assert scopes == {Scope.INPUT, Scope.SIZE}
    for found in PIPELINE.cases:
        assert (found.scope is Scope.INPUT) == ("inputs" in found.parameters), found.name
        if found.name.split(", ")[2] == "every G":
            modulus = found.parameters["modulus"]
            assert {g % modulus for g in found.parameters["coefficients"]} == set(range(modulus))


@pytest.mark.parametrize("modulus", [2, 3, 4])
def test_no_residue_is_left_out_when_the_order_of_a_pair_is_asked_for(modulus):
    for place in product(range(modulus), repeat=3):
        if place[1] == place[2]:
            continue

        def only_there(x, a, b, g, m, place=place):
            return int((x, a, b) != place)

        def there_not(x, a, b, g, m, place=place):
            return 0 if (x, a, b) in (place, (place[0], place[2], place[1])) else a + 1

        assert not is_symmetric(modulus, 1, only_there)
        assert not detects_every_swap(modulus, 1, there_not)
    assert is_symmetric(modulus, 1, lambda x, a, b, g, m: x + a * b)
    assert detects_every_swap(modulus, 1, lambda x, a, b, g, m: a)


def test_no_coefficient_modulus_or_example_is_left_out():
    for modulus in range(1, 11):
        order = Order(modulus)
        assert min(order.coefficients) == 2 * modulus + 1
        assert sorted(g % modulus for g in order.coefficients) == list(range(modulus))
        assert order.symmetric.tolist() == [int(g % modulus == 1 % modulus) for g in order.coefficients]
    example = EXAMPLE_123.instance(domain=INTEGERS)
    assert (example.tokens, example.instead) == ((1, 2, 3), ((1, 2, 3, 4), 5, 13))
    # 2M < 10.
    assert example.moduli.tolist() == [0, 0, 1, 0]
    every_g = next(claim for claim in EXAMPLE_123.errata[0].corrected if claim.id == "example-every-g")
    assert every_g.left(example).tolist() == [1, 1, 1]


@pytest.mark.parametrize(("n", "modulus", "every"), [(8, 2, True), (9, 1, False), (5, 3, True), (6, 3, False),
                                                     (1, 300, True), (1, 301, False)])
def test_every_residue_is_tried_up_to_eight_tokens_and_three_hundred_inputs(n, modulus, every):
    assert PIPELINE.requested is not None
    case, = PIPELINE.requested(Request(n=n, modulus=modulus))
    assert (case.scope is Scope.SIZE) == every == case.name.endswith("every residue")
    assert ("inputs" in case.parameters) == (not every)


@pytest.mark.parametrize(("n", "modulus", "products"), [
    (4, 2, 3 * 4**2 * 8 * 2**4 * 4 * 4), (5, 3, 3 * 5**2 * 10 * 3**5 * 5 * 9)])
def test_the_plain_network_is_tried_where_so_many_products_do(monkeypatch, n, modulus, products):
    """3 N^2 (G + 2) hidden units, M^N inputs, N tokens, ceil(sqrt N)^2 columns; G = 2M + 2."""
    assert PIPELINE.requested is not None
    for most, tried in ((products, True), (products - 1, False)):
        monkeypatch.setattr(counting_pipeline, "_MOST_PRODUCTS", most)
        (case,) = PIPELINE.requested(Request(n=n, modulus=modulus))
        assert case.parameters["bumps"] == tried


@pytest.mark.parametrize(("n", "inputs"), [(12, 40), (13, 3)])
def test_fewer_inputs_are_tried_where_tokens_are_not_symbols(n, inputs):
    assert PIPELINE.requested is not None
    (case,) = PIPELINE.requested(Request(n=n, modulus=5))
    assert len(case.parameters["inputs"]) == inputs


def test_the_inputs_are_those_that_the_case_names():
    largest = {case.parameters["modulus"] - 1 if case.parameters["largest"] is None else case.parameters["largest"]:
               int(build(PIPELINE, case).inputs.max()) for case in PIPELINE.cases if "inputs" not in case.parameters}
    assert 5 in largest
    assert all(named == found for named, found in largest.items())
