"""What a name says is what is built: the routing of a case, the tokens of a mask, the layers that a count compares."""

from itertools import combinations

import numpy as np
import pytest

from constructions.appendix_c_flops import MIXING_COST
from constructions.closed_forms import Routing
from constructions.counting_pipeline import PIPELINE
from constructions.cpm3_crossovers import SMALL_SMALLER
from constructions.crossovers import LEAST
from constructions.operator_span import drawn_operators
from constructions.repeated_sections import seeing
from constructions.small_impossible import ONE_HEAD, ONE_IHA_HEAD, PROJECTED_HEADS
from constructions.temperature import OUTPUT, ROUNDING
from constructions.theorem_3_polynomial_filter import FEWER_PSEUDO_HEADS
from constructions.theorem_4_cpm3 import LAYER
from iha_theory.claims import Request
from iha_theory.count import ceil_sqrt, counted
from iha_theory.rank import exact_rank
from iha_theory.scalars import INTEGERS
from iha_theory.verification import build


@pytest.mark.parametrize("case", LEAST.cases, ids=lambda case: case.name)
def test_the_routing_of_a_least_n_is_the_one_that_its_case_names(case):
    heads = {3: 2, 4: 2, 5: 3, 9: 3, 10: 4, 16: 4, 100: 10}[case.parameters["k"]]
    # Tiled: the fewest pseudo-heads P with ceil(H/P) ceil(L/P) <= H; L = P = H else.
    routing = {16: Routing(4, 4, 2), 100: Routing(10, 10, 4)}[case.parameters["k"]] if case.name.endswith("tiled") else (
        heads, heads, heads)
    instance = build(LEAST, case)
    assert instance.routing == routing
    assert case.name == f"k={instance.k}, d={instance.d}, {'tiled' if case.parameters['tiled'] else 'P = H'}"


def test_k_below_three_has_no_least_n():
    with pytest.raises(ValueError, match="k=2: IHA is never smaller; give k >= 3"):
        LEAST.instance(domain=INTEGERS, k=2, d=1, tiled=False)


@pytest.mark.parametrize("chosen", [chosen for size in (1, 2, 3) for chosen in combinations(range(3), size)])
def test_a_mask_shows_every_row_the_chosen_tokens_and_no_others(chosen):
    n, j, n2, j2 = np.ogrid[:3, :2, :3, :2]
    seen = np.broadcast_to(seeing(chosen)(n, j, n2, j2), (3, 2, 3, 2))
    assert {tuple(place) for place in np.argwhere(seen)} == {
        (row, pseudo, token, other) for row in range(3) for token in chosen for pseudo in range(2) for other in range(2)}


def test_the_built_mlp_of_multi_head_attention_reads_n_columns():
    # N = 4: layer 2N^2(N+1) + N(N+1), MLP N^2 units on N columns, and H^2 columns with IHA (here the same).
    instance = build(SMALL_SMALLER, SMALL_SMALLER.cases[1])
    assert instance.counts == ((423, 783), (546, 798))
    assert [counted(part[0]) for part in (instance.iha, instance.mha)] == [423, 546]
    assert [part[1].w_1.shape for part in (instance.iha, instance.mha)] == [(9, 36), (6, 36)]


@pytest.mark.parametrize(("section", "case"), [pytest.param(section, case, id=case.name) for section in (
    ONE_HEAD, PROJECTED_HEADS, ONE_IHA_HEAD) for case in section.cases])
def test_every_unknown_of_a_system_has_a_part_in_it(section, case):
    """The layer that the equations speak of has all the weights that it is said to have, mixing weights included."""
    system = build(section, case)
    ring = system.equations[0].ring
    used = {str(symbol) for equation in system.equations for symbol, degree in zip(
        ring.symbols, map(max, zip(*equation.monoms(), strict=True)), strict=True) if degree}
    names = {f"{name}{i}_{j}" for name, shape in system.unknowns.items() for i, j in np.ndindex(shape)}
    assert len(set(system.features)) == len(system.features)
    # Where one token alone carries a feature, the columns of the others do not matter.
    assert used - {"t"} <= names
    assert len(system.features) < system.n or used - {"t"} == names
    assert {name.rstrip("_0123456789") for name in used - {"t"}} == set(system.unknowns)
    assert ("t" in used) == any(callable(wanted) for wanted in system.wanted)


def asked(section, **more):
    """The cases of a user who gives N=4, M=2 and G=5, and more."""
    request = Request(n=4, modulus=2, coefficient=5, **more)
    return section.requested(request) if section.requested else ()


SMALL = [pytest.param(section, case, id=case.name) for section in (OUTPUT, ROUNDING, LAYER, PIPELINE)
         for case in (*section.cases, *asked(section)) if case.parameters["n"] <= 5]


@pytest.mark.parametrize(("section", "case"), SMALL)
def test_only_a_case_that_says_so_has_multi_head_attention(section, case):
    instance, n = build(section, case), case.parameters["n"]
    weights = instance.weights
    assert weights.is_mixed == ("multi-head attention" not in case.name)
    said = dict(part.split("=") for part in case.name.split(", ") if part[:2] in ("H=", "P="))
    heads = ceil_sqrt(n) if weights.is_mixed else n
    assert weights.sizes["head"] == int(said.get("H", heads))
    assert weights.sizes["pseudo"] == int(said.get("P", heads if weights.is_mixed else 1))


@pytest.mark.parametrize(("heads", "groups"), [(1, 1), (2, 1), (3, 2), (5, 3), (6, 3)])
def test_grouped_query_attention_has_a_key_for_every_two_heads(heads, groups):
    """Each key has two columns, so that all operators together read at most 2 dimensions for each group."""
    stacked = drawn_operators("grouped-query", heads).reshape(-1, heads + 1)
    assert exact_rank(stacked) == min(heads + 1, 2 * groups)


def test_the_cost_of_mixing_is_for_every_size():
    layer = build(MIXING_COST, MIXING_COST.cases[0]).layer
    assert [str(size) for size in (layer.heads, layer.key, layer.value, layer.model, layer.pseudo)] == [
        "H", "d_h", "d_h", "H*d_h", "P"]


def test_fewer_pseudo_heads_are_asked_for_by_name():
    paper, fewer, multi_head = (build(LAYER, case).weights.sizes for case in asked(LAYER, pseudo_heads=1))
    assert (paper["head"], paper["pseudo"]) == (2, 2)
    assert (fewer["head"], fewer["pseudo"]) == (4, 1)
    assert (multi_head["head"], multi_head["pseudo"]) == (4, 1)


@pytest.mark.parametrize("case", [case for case in FEWER_PSEUDO_HEADS.cases if case.parameters.get("heads")],
                         ids=lambda case: case.name)
def test_a_tiled_bank_has_the_heads_and_pseudo_heads_that_are_given(case):
    sizes = build(FEWER_PSEUDO_HEADS, case).weights.sizes
    assert (sizes["out"], sizes["pseudo"]) == (case.parameters["heads"], case.parameters["pseudo_heads"])


def test_a_tiled_bank_takes_more_heads_than_it_needs_if_they_are_given():
    for heads in (4, 5, 6):
        sizes = FEWER_PSEUDO_HEADS.instance(domain=INTEGERS, n=2, d=1, k=16, heads=heads, pseudo_heads=3).weights.sizes
        assert (sizes["out"], sizes["pseudo"]) == (heads, 3)


def test_the_counter_that_a_claim_names_is_the_one_that_counts():
    instance = build(PIPELINE, PIPELINE.cases[0])
    assert (instance.wanted(counter=lambda tokens, modulus, g: [modulus, g]) == [3, 7]).all()
