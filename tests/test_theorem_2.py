"""Theorem 2: the claim table, what each row speaks of and by which means it is known."""

import pytest

from constructions.theorem_2_superset import THEOREM
from iha_theory.claims import Means, Scope, Verdict
from iha_theory.verification import verify


@pytest.fixture(scope="module")
def rows():
    return list(verify([THEOREM]))


def test_every_verdict_is_the_expected_one(rows):
    assert [row.claim for row in rows if not row.is_expected] == []


def test_every_failure_and_every_difference_shows_a_witness(rows):
    assert all(row.witness for row in rows if row.verdict is Verdict.FAILS or row.relation == "≠")


def test_the_errata_are_two_gaps_and_two_false_statements():
    kinds = {erratum.id: erratum.kind for erratum in THEOREM.errata}
    assert kinds == {"thm2-flat-causal": "gap", "thm2-rope": "gap", "thm2-example-linear": "false",
                     "thm2-zero-mixing": "false"}


def test_counts_hold_for_all_sizes_equalities_for_every_input_of_a_size_and_differences_at_some_input(rows):
    mine = [row for row in rows if row.means is not Means.PROOF]
    scopes = {row.claim: max((r.scope, r.means) for r in mine if r.claim == row.claim) for row in mine}
    everywhere = {claim for claim, strength in scopes.items() if strength == (Scope.ALL, Means.EXACT)}
    assert everywhere == {"count", "count-projections", "flat-largest"}
    apart = {row.claim for row in mine if row.witness}
    assert {scopes[claim] for claim in apart} == {(Scope.INPUT, Means.EXACT)}
    assert {scopes[claim] for claim in set(scopes) - everywhere - apart} == {(Scope.SIZE, Means.EXACT)}


def test_only_a_formal_score_function_speaks_of_every_input(rows):
    rest = [row for row in rows if row.scope is not Scope.ALL and row.claim != "parameters"]
    formal = [row for row in rest if row.case.startswith("any score function, n=")]
    assert {row.scope for row in formal if not row.witness} == {Scope.SIZE}
    assert {row.scope for row in formal if row.witness} == {Scope.INPUT}
    assert {row.scope for row in rest if row.case.startswith(("base 2, n=", "softmax, n="))} == {Scope.INPUT}
    assert {row.case.split(", n=")[0] for row in rest} == {"any score function", "base 2", "softmax"}


def test_every_section_is_judged_at_the_real_temperature_too(rows):
    at_real = {row.claim for row in rows if row.means is Means.BALL}
    claims = {row.claim for row in rows if row.means is not Means.PROOF}
    assert claims - at_real == {"count", "count-projections", "flat-largest", "parameters"}
