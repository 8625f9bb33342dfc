"""Theorem 4: the claim table, a user's sizes, the inputs that its cases try."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from constructions.counting_pipeline import PIPELINE, substituted, telling_inputs
from constructions.cpm3_request import Asked, asked
from constructions.shorter_sequences import SHORTER
from constructions.temperature import ROUNDING
from constructions.theorem_4_cpm3 import LAYER, THEOREM
from iha_theory import RATIONALS, Request, verify
from iha_theory.claims import Means, Verdict


def test_what_a_request_asks_for():
    assert asked(Request(n=3)) == Asked(3, 5, 12, None)
    assert asked(Request(modulus=3, pseudo_heads=2)) == Asked(4, 3, 8, 2)
    assert asked(Request(n=25, k=3, coefficient=1)) == Asked(25, 5, 1, None)
    assert asked(Request(n=3, means=Means.EXACT)) == Asked(3, 5, 12, None)
    for other in (Request(), Request(n=3, k=2), Request(k=2), Request(n=3, means=Means.FLOAT)):
        assert asked(other) is None


def test_polynomials_are_evaluated_at_integers():
    from sympy import QQ
    from sympy.polys.rings import ring

    _, x, y = ring("x, y", QQ)
    array = np.array([x * x + y / 2, x - x], dtype=object)
    assert substituted(array, np.array([[3, 4], [0, 1]], dtype=object)).tolist() == [[11, 0], [Fraction(1, 2), 0]]


@pytest.mark.parametrize(("options", "message"), [
    ({"n": 0}, "number of tokens n=0, wanted an integer of at least 1"),
    ({"n": 26}, "n=26 is more than the exact check takes; wanted at most 25"),
    ({"modulus": 0}, "modulus M=0, wanted"),
    ({"n": 3, "coefficient": 0}, "coefficient G=0, wanted at least 1"),
    ({"n": 3, "pseudo_heads": 0}, "P=0 pseudo-heads"),
    ({"k": 3}, "no case takes the options given"),
    ({"n": 3, "k": 3}, "no case takes the options given"),
])
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        list(verify([THEOREM], Request(**options)))


@pytest.mark.parametrize(("options", "heads"), [
    ({"n": 16, "pseudo_heads": 2}, 4), ({"n": 25, "pseudo_heads": 3}, 5), ({"n": 4, "pseudo_heads": 1}, None),
    ({"n": 9}, 3), ({"n": 5, "multi_head": True}, 5)])
def test_a_number_of_heads_is_claimed_where_so_few_pseudo_heads_reach_it(options, heads):
    assert LAYER.instance(domain=RATIONALS, **options).heads == heads


def test_broken_premises_are_refused():
    from iha_theory.verification import build

    shorter = replace(SHORTER.cases[0], parameters={**SHORTER.cases[0].parameters, "n": 3})
    with pytest.raises(ValueError, match="the sequence is shorter than N_max"):
        build(SHORTER, shorter)
    without = replace(SHORTER.cases[0], parameters={**SHORTER.cases[0].parameters, "coefficients": (0, 1)})
    with pytest.raises(ValueError, match="the coefficient G is at least 1"):
        build(SHORTER, without)
    longer = replace(LAYER.cases[0], parameters={"n": 3, "tokens": (1, 2)})
    with pytest.raises(ValueError, match="the length N_max that the layer is built for"):
        build(LAYER, longer)


def test_the_worked_cases_show_what_is_expected_and_every_refutation_shows_where():
    rows = list(verify([THEOREM]))
    assert [f"{row.case}: {row.claim}" for row in rows if not row.is_expected] == []
    assert all(row.witness is not None for row in rows if row.verdict is Verdict.FAILS)
    assert {row.claim for row in rows if row.means is not Means.PROOF} == {
        claim.id for section in THEOREM.sections
        for claim in (*section.claims, *(c for e in section.errata for c in (e.printed, *e.corrected)))}
    assert {row.means.name for row in rows} == {"EXACT", "BALL", "PROOF"}


@pytest.mark.parametrize("options", [
    {"n": 12, "modulus": 7, "coefficient": 17},
    {"n": 13, "pseudo_heads": 2},
    *({"n": n, "modulus": m, "coefficient": g} for n in (1, 2, 3) for m in (1, 2, 3) for g in (1, 2, 7)),
    *({"n": n, "pseudo_heads": p} for n in (2, 3, 4, 5) for p in (1, 2, 3)),
])
def test_a_users_sizes_show_what_is_expected(options):
    rows = list(verify([THEOREM], Request(**options)))
    assert [f"{row.case}: {row.claim}" for row in rows if not row.is_expected] == []
    assert {"shifts", "counts"} <= {row.claim for row in rows}


def test_every_residue_means_every_residue():
    from iha_theory.verification import build

    pipeline = build(PIPELINE, PIPELINE.cases[0])
    assert pipeline.inputs.tolist() == [[a, b] for a in range(3) for b in range(3)]
    every_g = build(PIPELINE, next(case for case in PIPELINE.cases if case.name == "N=3, M=4, every G, every residue"))
    assert (len(every_g.inputs), every_g.coefficients) == (64, (9, 10, 11, 12))
    shorter = build(SHORTER, SHORTER.cases[0])
    assert (shorter.n_max, shorter.inputs.tolist()) == (3, [[0, 0], [0, 1], [1, 0], [1, 1]])
    rounding = build(ROUNDING, ROUNDING.cases[0])
    assert (rounding.threshold, rounding.inputs.tolist()) == (3, pipeline.inputs.tolist())


def test_telling_inputs_hold_the_cases_that_matter():
    rows = telling_inputs(4, 7, 40)
    assert rows.shape == (40, 4)
    assert [0, 0, 0, 0] in rows.tolist()
    assert rows.max() >= 10**8
    assert PIPELINE.cases[-1].parameters["inputs"].shape == (24, 9)
