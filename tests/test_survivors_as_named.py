"""What a name says is what is built: the routing of a case, the tokens of a mask, the layers that a count compares."""

from itertools import combinations

import numpy as np
import pytest

from constructions.closed_forms import Routing
from constructions.cpm3_crossovers import SMALL_SMALLER
from constructions.crossovers import LEAST
from constructions.repeated_sections import seeing
from iha_theory.count import counted
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
