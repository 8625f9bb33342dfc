"""Parameters counted three ways against plain loops and literals worked by hand."""

import itertools
import math

import numpy as np
import pytest

from constructions import accounts, language_model
from constructions.accounts import ACCOUNTS, BY_NAME
from constructions.blocks import cheapest_cover, tiled_cover
from constructions.closed_forms import (
    cheapest_routing,
    filter_iha,
    filter_mha,
    least_pseudo_heads,
    paper_routing,
    shifts_iha,
    shifts_mha,
    tiled_routing,
)
from constructions.language_model import LanguageModel
from iha_theory.count import ceil_sqrt, counted, parameters
from iha_theory.layer import AXES, IHA, multi_head
from iha_theory.verification import is_sound, verify


def heads_for(k):
    """The least H with H * H >= k, by trying."""
    return next(h for h in itertools.count(1) if h * h >= k)


def entries(*shapes):
    """How many entries arrays of these shapes have, one by one."""
    return sum(1 for shape in shapes for _ in itertools.product(*map(range, shape)))


def layer_entries(heads, model, key, value, pseudo):
    """The entries of an IHA layer, weight by weight, as Algorithm 1 lists them; pseudo=None for multi-head
    attention."""
    base = [(heads, model, key), (heads, model, key), (heads, model, value)]
    if pseudo is None:
        return entries(*base)
    return entries(*base, *[(heads, heads, pseudo)] * 3, (heads, heads * pseudo))


@pytest.mark.parametrize("k", range(1, 140))
def test_the_head_count_is_the_least_whose_square_reaches_k(k):
    assert ceil_sqrt(k) == heads_for(k)


def test_the_head_count_of_a_large_square_and_its_neighbours_is_exact():
    root = 10**20 + 3
    assert [ceil_sqrt(root**2 + step) for step in (-1, 0, 1)] == [root, root, root + 1]


@pytest.mark.parametrize("sizes", [(2, 3, 5, 7, 11), (1, 1, 1, 1, 1), (3, 7, 2, 5, 1)])
def test_the_axes_count_every_entry_of_a_layer(sizes):
    heads, model, key, value, pseudo = sizes
    named = {"source": heads, "head": heads, "out": heads, "pseudo": pseudo, "model": model, "key": key,
             "value": value}
    assert parameters(named) == layer_entries(*sizes)
    assert parameters(named, mixed=False) == layer_entries(heads, model, key, value, None)
    assert parameters(named) - parameters(named, mixed=False) == 4 * heads**2 * pseudo
    shapes = {name: np.zeros([named[axis] for axis in axes.split()]) for name, axes in AXES.items()}
    assert counted(IHA(**shapes)) == layer_entries(*sizes)
    base = multi_head(shapes["w_q"], shapes["w_k"], shapes["w_v"])
    assert counted(base) == layer_entries(heads, model, key, value, None)


@pytest.mark.parametrize(("n", "d", "k", "iha", "mha"), [
    # By hand: H = 1: 2*1*2*1 + 1*2*1 + 4 = 10 against 2*1*2*1 + 1*2*1 = 6.
    (1, 1, 1, 10, 6),
    # H = 2: 2*2*3*2 + 1*3*4 + 32 = 68 against 2*2*3*4 + 1*3*4 = 60; with k = 3 against 45.
    (2, 1, 4, 68, 60), (2, 1, 3, 68, 45),
    # H = 3: 2*3*5*3 + 2*5*9 + 108 = 288 against 2*3*5*5 + 2*5*5 = 200.
    (3, 2, 5, 288, 200),
])
def test_a_bank_has_as_many_parameters_as_by_hand(n, d, k, iha, mha):
    heads = heads_for(k)
    assert filter_iha(n, d, heads, heads, heads) == iha == layer_entries(heads, d + n, n, d * heads, heads)
    assert filter_mha(n, d, k) == mha == layer_entries(k, d + n, n, d, None)
    assert paper_routing(k) == (heads, heads, heads)
    assert BY_NAME["filter-iha"].built(n, d, k) == iha
    assert BY_NAME["filter-mha"].built(n, d, k) == mha


@pytest.mark.parametrize(("n", "iha", "mha", "total_iha", "total_mha"), [
    # Attention, then with the MLP on H^2 or N columns: each of the N^2 pairs reads them all and writes once.
    (1, 10, 6, 12, 8), (2, 68, 30, 88, 42), (3, 96, 84, 141, 120), (4, 132, 180, 212, 260),
    (5, 342, 330, 592, 480),
    (6, 423, 546, 783, 798),
])
def test_cpm3_has_as_many_parameters_as_by_hand(n, iha, mha, total_iha, total_mha):
    heads = heads_for(n)
    pairs = sum(1 for _ in itertools.product(range(n), repeat=2))
    assert shifts_iha(n, heads) == iha == layer_entries(heads, 1 + n, n, heads, heads)
    assert shifts_mha(n) == mha == layer_entries(n, 1 + n, n, 1, None)
    assert BY_NAME["cpm3-total-iha"].built(n) == total_iha == iha + entries((heads**2, pairs), (pairs, 1))
    assert BY_NAME["cpm3-total-mha"].built(n) == total_mha == mha + entries((n, pairs), (pairs, 1))


@pytest.mark.parametrize("account", ACCOUNTS, ids=lambda account: account.name)
def test_the_three_numbers_agree_at_sizes_that_no_section_names(account):
    given = {"filter": [(4, 3, 7), (6, 1, 26)], "cpm3": [(6,), (11,)],
             "layer": [(2, 7, 3, 5, 2), (4, 2, 1, 3, 5)]}
    for sizes in given[account.name.split("-")[0]]:
        own = sizes[: len(account.sizes.split())] if account.name.startswith("layer") else sizes
        numbers = account.of(*own)
        assert account.built(*own) == account.closed(*numbers) == account.printed(*numbers)


@pytest.mark.parametrize("heads", range(1, 30))
def test_the_least_tiling_is_the_least_that_can_be_laid(heads):
    for blocks in range(max(1, heads - 1), heads + 1):
        least = least_pseudo_heads(heads, blocks)
        assert tiled_cover(heads, blocks, least).pseudo_heads <= least
        for fewer in range(1, least):
            with pytest.raises(ValueError, match="rectangles"):
                tiled_cover(heads, blocks, fewer)
    assert math.isqrt(heads) ** 2 <= heads <= least_pseudo_heads(heads, heads) ** 2
    assert least_pseudo_heads(heads, heads) <= -(-heads // math.isqrt(heads))


@pytest.mark.parametrize("pseudo_heads", range(1, 7))
def test_the_cheapest_routing_is_that_of_the_cover(pseudo_heads):
    for k in range(1, 70):
        cover = cheapest_cover(k, pseudo_heads)
        assert cheapest_routing(k, pseudo_heads) == (cover.heads, cover.columns, pseudo_heads)


def test_the_tiled_routing_reaches_every_power_with_the_fewest_heads():
    for k in range(1, 200):
        heads, blocks, pseudo_heads = tiled_routing(k)
        assert heads == heads_for(k)
        assert heads * (blocks - 1) < k <= heads * blocks
        assert pseudo_heads <= heads


def test_the_language_model_has_2_4_billion_parameters_in_one_reading():
    width, layers = 20 * 128, 26
    assert (width, layers) == (2560, 26)
    attention = 4 * 2560 * 2560
    norms = 26 * 2 * 2560 + 2560
    totals = {}
    for matrices, copies in itertools.product((2, 3), (1, 2, 0)):
        layer = attention + matrices * 2560 * 10_240
        totals[matrices, copies] = copies * 128_256 * 2560 + 26 * layer + norms
    kinds = {1: "shared", 2: "separate", 0: "none"}
    for (matrices, copies), total in totals.items():
        model = LanguageModel(matrices=matrices, embeddings=kinds[copies])
        assert model.total == total == model.counted()
    assert totals[2, 1] == 2_373_194_240
    assert [reading for reading, total in totals.items() if round(total / 10**8) == 24] == [(2, 1)]


def test_mixing_adds_four_square_matrices_for_each_pseudo_head():
    for pseudo, mixed in ((2, 26), (3, 5)):
        plain, model = LanguageModel(), LanguageModel(pseudo=pseudo, mixed_layers=mixed)
        assert model.total - plain.total == 4 * 20 * 20 * pseudo * mixed == model.counted() - plain.counted()


@pytest.mark.parametrize("theorem", [accounts.THEOREM, language_model.THEOREM], ids=lambda found: found.key)
def test_every_verdict_of_the_accounts_is_the_expected_one(theorem):
    rows = list(verify([theorem]))
    assert rows
    assert is_sound(rows)


@pytest.mark.parametrize("k", [0, -1])
def test_no_root_is_taken_of_what_is_not_positive(k):
    with pytest.raises(ValueError, match=f"^k: got {k}, wanted at least 1$"):
        ceil_sqrt(k)
