"""Which bank an option asks for, and how large a layer it takes to be: the last k that fits into memory, by hand."""

import numpy as np
import pytest

import constructions.bank_cases as bank_cases
from constructions.counting_pipeline import PIPELINE
from constructions.cpm3_request import asked as asked_of_cpm3
from constructions.order_sensitivity import ORDER
from constructions.shorter_sequences import SHORTER
from constructions.theorem_1_operator_count import HEADS
from constructions.theorem_3_polynomial_filter import FEWER_PSEUDO_HEADS, IHA_BANK
from constructions.theorem_4_cpm3 import LAYER, THEOREM
from iha_theory import POLYNOMIALS, RATIONALS, Means, Request, load_graph


def asked(section, k, pseudo_heads=None, n=1000):
    """The cases of k powers of a random A with 2 features, by residues."""
    return section.requested(Request(n=n, k=k, pseudo_heads=pseudo_heads, means=Means.RESIDUE))


@pytest.mark.parametrize(("section", "k", "pseudo_heads"), [
    # Entries of weights and, twice, of pseudo-queries, -keys and -values, 8 bytes each, against 2 GiB: 268,435,456 entries.
    # k heads: k (2 * 1000 * 1002 + 1002 * 2 + 2 * 1000 * 1002) + 4k^2, 264,677,688 for k = 66 and 268,688,224 for k = 67.
    (HEADS, 66, None),
    # H = P = L: 2H * 1000 * 1002 + 2H^2 * 1002 + 4H^3 + 2H^2 * 1000 * (1000 + 2H), 224,244,400 for H = 10 and
    # 269,615,808 for H = 11.
    (IHA_BANK, 100, None),
    # P = 2, L = 4: H (2 * 1000 * 1002 + 8 * 1002 + 4 * 1000 * 1008) + 8H^2, 265,952,192 for H = 44; k = 177 takes 46 heads.
    (FEWER_PSEUDO_HEADS, 176, 2),
])
def test_the_last_k_that_fits(section, k, pseudo_heads):
    (case,) = asked(section, k, pseudo_heads)
    assert case.name == f"random A, n=1000, d=2, k={k}"
    with pytest.raises(ValueError, match=rf"k={k + 1} over the residues needs about 2\.\d GiB"):
        asked(section, k + 1, pseudo_heads)


@pytest.mark.parametrize(("k", "pseudo_heads", "is_tiled"), [
    (16, 3, True), (16, 4, False), (1, 1, False), (2, 1, True), (None, 2, True), (None, 3, False)])
def test_fewer_pseudo_heads_than_heads_are_tiled(k, pseudo_heads, is_tiled):
    paper, tiled = (asked(section, k, pseudo_heads, n=3) for section in (IHA_BANK, FEWER_PSEUDO_HEADS))
    assert (len(paper), len(tiled)) == (int(not is_tiled), int(is_tiled))
    # The paper's routing has P = H whatever P was asked for.
    assert [case.parameters.get("pseudo_heads") for case in (*paper, *tiled)] == [pseudo_heads if is_tiled else None]


def names(request):
    """The names of the cases that a request asks of Theorem 4, section by section."""
    return [[case.name for case in section.requested(request)] for section in THEOREM.sections if section.requested]


@pytest.mark.parametrize(("n", "counts"), [(4, "every residue"), (7, "40 given inputs"), (13, "3 given inputs")])
def test_the_cases_of_cpm3(n, counts):
    """Layers; counts, of all inputs while they are few; half as many tokens and one fewer; every G; the built weights."""
    sizes = "M=3, G=5"
    assert names(Request(n=n, modulus=3, coefficient=5)) == [
        [f"N={n}, IHA, P = H, every token", f"N={n}, multi-head attention, every token"],
        [f"N={n}, {sizes}, {counts}"],
        [f"N_max={n}, N={m}, {sizes}, given inputs" for m in (n // 2, n - 1)],
        ["M=3, every G, every residue"],
        [f"N={n}, counted in the weights"],
    ]


@pytest.mark.parametrize("more", [{"k": 3}, {"features": np.ones((3, 1))}, {"graph": True}])
def test_n_with_an_option_of_banks_asks_nothing_of_cpm3(more):
    given = more | ({"graph": load_graph("karate")} if "graph" in more else {})
    assert asked_of_cpm3(Request(n=3, **given)) is None
    assert names(Request(n=3, **given)) == [[]] * 5
    # A modulus or a coefficient makes it CPM-3 all the same.
    assert asked_of_cpm3(Request(n=3, modulus=2, **given)) is not None


def test_the_largest_k_is_served_and_the_next_is_not(monkeypatch):
    monkeypatch.setattr(bank_cases, "LARGEST_K", 4)
    assert len(asked(HEADS, 4, n=3)) == 1
    with pytest.raises(ValueError, match="k: got 5, wanted at most 4 powers"):
        asked(HEADS, 5, n=3)


def cases_of(section, request):
    return section.requested(request)


@pytest.mark.parametrize(("n", "domain"), [(4, POLYNOMIALS), (12, POLYNOMIALS), (13, RATIONALS)])
def test_the_tokens_of_cpm3_are_symbols_up_to_twelve(n, domain):
    request = Request(n=n, modulus=3, coefficient=5)
    assert {case.domain for section in (LAYER, PIPELINE, SHORTER) for case in cases_of(section, request)} == {domain}


@pytest.mark.parametrize(("n", "shorter"), [(1, []), (2, [1]), (3, [1, 2]), (6, [3, 5])])
def test_sequences_that_are_shorter_than_asked_for(n, shorter):
    cases = cases_of(SHORTER, Request(n=n, modulus=3, coefficient=5))
    assert [case.parameters["inputs"].shape[1] for case in cases] == shorter


def test_all_residues_are_tried_for_order_up_to_modulus_24():
    assert [len(cases_of(ORDER, Request(n=1, modulus=modulus))) for modulus in (1, 24, 25)] == [1, 1, 0]
