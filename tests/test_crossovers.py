"""When IHA is smaller: the least N against trying every N, and certificates that a few lines accept or
reject."""

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest

from constructions import crossovers
from constructions.closed_forms import (
    Routing,
    cheapest_routing,
    cpm3_iha,
    cpm3_mha,
    least_tokens,
    paper_routing,
    shifts_iha,
    shifts_mha,
    tiled_routing,
)
from constructions.for_all_sizes import Inequality
from iha_theory.positivity import Certificate, accepts, certificate
from iha_theory.verification import is_sound, verify


def heads_for(k):
    return next(h for h in itertools.count(1) if h * h >= k)


def iha_entries(n, d, heads, blocks, pseudo):
    """Queries, keys, values, three mixings and R, by their shapes."""
    model = n + d
    return (heads * model * n + heads * model * n + heads * model * d * blocks
            + 3 * (heads * heads * pseudo) + heads * (heads * pseudo))


def mha_entries(n, d, k):
    return k * (n + d) * n + k * (n + d) * n + k * (n + d) * d


def first_smaller(k, d, routing, limit):
    return next((n for n in range(1, limit) if iha_entries(n, d, *routing) < mha_entries(n, d, k)), None)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 31])
def test_the_least_n_is_the_first_of_all(d):
    for k in range(1, 40):
        for routing in (paper_routing(k), tiled_routing(k), cheapest_routing(k, 2)):
            assert least_tokens(k, d, routing) == first_smaller(k, d, routing, 400)


def test_once_smaller_iha_stays_smaller():
    for k, d in itertools.product(range(3, 20), (1, 4, 9)):
        heads = heads_for(k)
        least = least_tokens(k, d, Routing(heads, heads, heads)) or 0
        assert least > 0
        for n in range(least, least + 60):
            assert iha_entries(n, d, heads, heads, heads) < mha_entries(n, d, k)


@pytest.mark.parametrize("k", [3, 10**6, 10**6 + 1, (10**7 + 3) ** 2 - 1, 10**18 + 1])
@pytest.mark.parametrize("d", [1, 97, 10**9])
def test_the_least_n_is_exact_where_floats_are_not(k, d):
    routing = paper_routing(k)
    least = least_tokens(k, d, routing) or 0
    assert least > 0
    assert iha_entries(least, d, *routing) < mha_entries(least, d, k)
    assert least == 1 or iha_entries(least - 1, d, *routing) >= mha_entries(least - 1, d, k)


def test_a_root_that_is_whole_is_not_yet_smaller():
    # Sizes at which both have as many parameters: the next N is the least at which IHA is smaller.
    ties = [(k, d, routing, n) for k, d, n in itertools.product(range(2, 12), range(1, 6), range(1, 12))
            for routing in (Routing(h, blocks, p) for h in range(1, k) for blocks in (1, 2) for p in (1, 2, 3)
                            if h * blocks >= k)
            if iha_entries(n, d, *routing) == mha_entries(n, d, k)]
    assert ties
    for k, d, routing, n in ties:
        assert least_tokens(k, d, routing) == n + 1


def test_below_n_over_d_iha_is_smaller_exactly_from_three_powers_on():
    for k, d in itertools.product(range(1, 30), range(1, 8)):
        heads = heads_for(k)
        for n in range(k * d + 1, k * d + 20):
            smaller = iha_entries(n, d, heads, heads, heads) < mha_entries(n, d, k)
            assert smaller == (k >= 3)


def test_at_n_equal_to_k_d_the_bound_of_three_powers_is_lost():
    assert iha_entries(3, 1, 2, 2, 2) > mha_entries(3, 1, 3)


def test_the_letters_of_the_proof_reach_every_k():
    for k in range(3, 3000):
        heads = heads_for(k)
        assert (heads - 1) ** 2 + 1 <= k <= heads**2
        assert (heads == 2 and k - 3 >= 0) or (heads >= 3 and k - (heads - 1) ** 2 - 1 >= 0)
    for n in range(6, 3000):
        heads = heads_for(n)
        assert (heads == 3 and n - 6 >= 0) or (heads >= 4 and n - (heads - 1) ** 2 - 1 >= 0)


def test_cpm3_is_smaller_at_four_and_from_six_on():
    for total in (False, True):
        smaller = []
        for n in range(1, 300):
            heads = heads_for(n)
            iha, mha = iha_entries(n, 1, heads, heads, heads), mha_entries(n, 1, n)
            if total:
                iha, mha = iha + heads**2 * n**2 + n**2, mha + n * n**2 + n**2
                assert (iha, mha) == (cpm3_iha(n, heads), cpm3_mha(n))
            else:
                assert (iha, mha) == (shifts_iha(n, heads), shifts_mha(n))
            smaller += [n] if iha < mha else []
        assert smaller == [4, *range(6, 300)]


def test_the_constants_of_the_bound_are_met_at_two_and_nowhere_else():
    for n in range(1, 400):
        heads = heads_for(n)
        attention = Fraction(iha_entries(n, 1, heads, heads, heads))
        excess = attention + (heads**2 + 1) * n**2 - n**3
        assert (attention**2 / n**5 == Fraction(17**2, 2)) == (n == 2)
        assert (excess**2 / n**5 == 200) == (n == 2)
        assert attention**2 / n**5 <= Fraction(17**2, 2)
        assert excess > 0
        assert excess**2 / n**5 <= 200 < 37**2


INEQUALITIES = [
    pytest.param(section.instance(domain=case.domain, **case.parameters), id=f"{section.title}, {case.name}")
    for section in crossovers.THEOREM.sections for case in section.cases if "function" in case.parameters]


def test_there_are_certificates():
    assert len(INEQUALITIES) >= 20


@pytest.mark.parametrize("inequality", INEQUALITIES)
def test_a_certificate_is_accepted_and_each_change_of_it_rejected(inequality):
    found = inequality.found
    assert accepts(inequality.function, found, strict=inequality.strict)
    for exponents, value in found.coefficients.items():
        for wrong in (value + 1, value - 1, -value - 1, 2 * value + 2):
            changed = replace(found, coefficients={**found.coefficients, exponents: wrong})
            assert not accepts(inequality.function, changed, strict=inequality.strict)
        less = {key: entry for key, entry in found.coefficients.items() if key != exponents}
        if value:
            assert not accepts(inequality.function, replace(found, coefficients=less),
                               strict=inequality.strict)
    more = replace(found, coefficients={**found.coefficients, (99,) * len(found.names): 1})
    assert not accepts(inequality.function, more, strict=inequality.strict)
    assert not accepts(lambda *sizes: -inequality.function(*sizes) - 1, found, strict=inequality.strict)


@pytest.mark.parametrize("inequality", INEQUALITIES)
def test_the_inequality_holds_at_points_of_its_own(inequality):
    assert isinstance(inequality, Inequality)
    for point in itertools.islice(itertools.product((0, 1, 4), repeat=len(inequality.names)), 60):
        assert inequality.function(*point) >= int(inequality.strict)


def test_a_certificate_lists_what_the_function_expands_to():
    # (3 + t)^2 - 7 = t^2 + 6t + 2.
    found = certificate(lambda t: (3 + t) ** 2 - 7, ("t",))
    assert found == Certificate(("t",), {(0,): 2, (2,): 1, (1,): 6})
    assert found.constant == 2
    assert accepts(lambda t: (3 + t) ** 2 - 7, found, strict=True)


@pytest.mark.parametrize(("function", "strict"), [
    (lambda t: t * t - 2 * t + 2, False),  # positive everywhere, but not by its coefficients
    (lambda t: t - 1, False), (lambda t: t, True), (lambda t: 0 * t, True),
])
def test_a_true_list_of_coefficients_that_shows_nothing_is_rejected(function, strict):
    assert not accepts(function, certificate(function, ("t",)), strict=strict)


def test_at_most_needs_no_positive_constant():
    assert accepts(lambda t: t, certificate(lambda t: t, ("t",)), strict=False)
    assert accepts(lambda t: 0 * t, certificate(lambda t: 0 * t, ("t",)), strict=False)


def test_every_verdict_of_the_crossovers_is_the_expected_one():
    rows = list(verify([crossovers.THEOREM]))
    assert is_sound(rows)
    for_all_n = ("smaller", "larger", "cpm3-attention", "cpm3-total", "cpm3-200", "cpm3-37")
    assert {row.scope.name for row in rows if row.claim in for_all_n} == {"ALL"}
    assert {row.means.name for row in rows} == {"EXACT"}
