"""From claims to rows: premises, expectations, primes, requests, processes."""

import dataclasses
import json
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from constructions import CATALOGUE
from iha_theory import report, verification
from iha_theory.claims import (
    Claim,
    Erratum,
    Evidence,
    Means,
    Premise,
    Proof,
    Relation,
    Request,
    Scope,
    Verdict,
)
from iha_theory.proofs import digest
from iha_theory.residues import Residues
from iha_theory.scalars import BALLS, FLOATS, INTEGERS, RATIONALS, RESIDUES
from iha_theory.verification import (
    build,
    errata_cases,
    is_sound,
    jobs_of,
    judge_case,
    rounded_up,
    select,
    strongest,
    verify,
    verify_in_parallel,
)
from tests.sameness import is_same
from tests.small_theorems import IS_FOUR, case, row, section, theorem

PRIMES = (1048583, 1048589)


@pytest.mark.parametrize(("domain", "value", "means", "verdict"), [
    (INTEGERS, 4, Means.EXACT, Verdict.HOLDS),
    (RATIONALS, 5, Means.EXACT, Verdict.FAILS),
    (FLOATS, 4, Means.FLOAT, Verdict.AGREES),
    (FLOATS, 5, Means.FLOAT, Verdict.FAILS),
    (BALLS, 4, Means.BALL, Verdict.AGREES),
])
def test_a_row_says_by_which_means_it_is_known(domain, value, means, verdict):
    (row,) = verify([theorem(section(case(value, domain, Scope.SIZE)))])
    assert (row.means, row.verdict, row.scope) == (means, verdict, Scope.SIZE)
    assert (row.theorem, row.claim, row.case, row.relation) == ("7", "four", f"value={value}", "=")
    assert (row.says, row.erratum) == (IS_FOUR.says, "")
    assert row.is_expected == (value == 4)
    assert (row.witness is None) == (value == 4)
    assert is_sound([row]) == (value == 4)


def test_residues_are_judged_at_every_prime_and_state_their_error():
    (row,) = verify([theorem(section(case(4, RESIDUES, primes=PRIMES)))])
    assert row.verdict is Verdict.HOLDS
    assert row.means is Means.RESIDUE
    assert row.remark == "error probability at most 1e-6, 2 primes"
    # 4 plus the first prime is 4 modulo that prime and not modulo the other: one prime refutes, and for certain.
    (row,) = verify([theorem(section(case(4 + PRIMES[0], RESIDUES, primes=PRIMES)))])
    assert row.verdict is Verdict.FAILS
    assert row.means is Means.EXACT
    assert row.remark == ""


def test_a_claim_may_have_its_own_domain_and_scope_and_choose_its_instances():
    count = Claim("count", "", Relation.EQUAL, lambda i: 1, lambda i: 1, domain=INTEGERS, scope=Scope.ALL)
    never = Claim("never", "", Relation.EQUAL, lambda i: 1, lambda i: 2, domain=INTEGERS, applies=lambda i: False)
    (row,) = verify([theorem(section(case(4, FLOATS), claims=(count, never)))])
    assert (row.claim, row.scope, row.means) == ("count", Scope.ALL, Means.EXACT)


def test_a_broken_premise_is_its_sentence():
    premise = Premise("the number is even", lambda i: int(i.value[0]) % 2 == 0)
    good = section(case(4), premises=(premise,))
    assert [row.verdict for row in verify([theorem(good)])] == [Verdict.HOLDS]
    with pytest.raises(ValueError, match="value=5: a premise is broken: the number is even"):
        list(verify([theorem(section(case(5), premises=(premise,)))]))
    with pytest.raises(ValueError, match="a premise is broken"):
        build(section(case(5), premises=(premise,)), case(5))


def test_premises_are_checked_at_every_prime():
    premise = Premise("no residues", lambda i: not isinstance(i.value, Residues))
    with pytest.raises(ValueError, match="a premise is broken: no residues"):
        list(verify([theorem(section(case(4, RESIDUES, primes=PRIMES), premises=(premise,)))]))


PRINTED = dataclasses.replace(IS_FOUR, id="printed", expect=Verdict.FAILS)


def test_a_printed_claim_is_expected_to_fail_and_its_correction_to_hold():
    erratum = Erratum("e", "false", "Theorem 7", "It is five.", PRINTED,
                      (Claim("five", "it is five", Relation.EQUAL, lambda i: i.value, lambda i: [5]),))
    rows = list(verify([theorem(section(case(5), claims=(), errata=(erratum,)))]))
    assert [(row.claim, row.verdict, row.is_expected, row.erratum) for row in rows] == [
        ("printed", Verdict.FAILS, True, "e"), ("five", Verdict.HOLDS, True, "e")]
    rows = list(verify([theorem(section(case(4), claims=(), errata=(erratum,)))]))
    assert [row.is_expected for row in rows] == [False, False]
    text = "\n".join(report.errata(rows, [theorem(section(case(4), claims=(), errata=(erratum,)))]))
    assert "1. e (false): Theorem 7" in text
    assert text.count("UNEXPECTED") == 2


def test_a_type_error_in_a_claim_is_never_a_refutation():
    broken = dataclasses.replace(PRINTED, left=lambda i: [None])
    with pytest.raises(TypeError, match="none of the integers"):
        list(verify([theorem(section(case(4), claims=(broken,)))]))


def test_agrees_serves_where_holds_is_expected_and_open_never():
    assert row(Verdict.AGREES).is_expected
    assert not row(Verdict.AGREES, Verdict.FAILS).is_expected
    assert not row(Verdict.OPEN).is_expected
    assert not row(Verdict.OPEN, Verdict.FAILS).is_expected
    assert row(Verdict.FAILS, Verdict.FAILS).is_expected


def test_the_strongest_evidence_has_the_widest_scope_then_the_strongest_means():
    rows = [row(Verdict.HOLDS, scope=Scope.GRAPH), row(Verdict.HOLDS, means=Means.RESIDUE), row(Verdict.HOLDS),
            row(Verdict.FAILS, scope=Scope.ALL), row(Verdict.FAILS, Verdict.FAILS, scope=Scope.ALL)]
    assert strongest(rows) is rows[2]
    assert strongest(rows[3:]) is None


def test_a_request_asks_only_the_sections_that_take_it():
    taking = section(case(4), requested=lambda r: (case(r.k),) if r.k else (), options=("k",))
    silent = section(case(4))
    book = [theorem(taking, silent)]
    assert [job.name for job in jobs_of(book)] == ["value=4", "value=4"]
    assert [job.name for job in jobs_of(book, Request(k=9))] == ["value=9"]
    assert [job.section for job in jobs_of(book, Request(k=9))] == [0]
    with pytest.raises(ValueError, match=r"Theorem 7: no case takes the options given \(n\)"):
        jobs_of(book, Request(n=3))
    with pytest.raises(ValueError, match="Theorem 7: nothing that is asked for takes n; leave it out"):
        jobs_of(book, Request(k=9, n=3))
    with pytest.raises(ValueError, match=r"options given \(means=float\)"):
        jobs_of(book, Request(means=Means.FLOAT))
    assert Request(k=1, n=2, means=Means.FLOAT).given() == ("k", "n")


def test_an_error_probability_is_rounded_up_to_a_power_of_ten():
    assert [rounded_up(Fraction(*e)) for e in ((1, 1), (1, 2), (1, 10), (2, 10**6), (1, 10**6), (1, 10**6 - 1))] == [
        "1e-0", "1e-0", "1e-1", "1e-5", "1e-6", "1e-5"]


def test_an_empty_request_asks_for_the_worked_cases():
    book = [theorem(section(case(4)))]
    assert list(verify(book, Request())) == list(verify(book))


def test_a_request_reaches_its_cases_here_and_in_other_processes():
    assert [row.case for row in verify(asking(), Request(k=5))] == ["value=5"]
    assert [row.case for row in verify_in_parallel(asking, [], Request(k=5), 2)] == ["value=5"]


def asking():
    return (theorem(section(case(4), requested=lambda r: (case(r.k),), options=("k",))),)


def test_an_option_of_a_section_without_a_case_is_not_taken():
    taking = section(case(4), requested=lambda r: (case(r.k),), options=("k",))
    silent = section(case(4), requested=lambda r: (), options=("n",))
    with pytest.raises(ValueError, match="^Theorem 7, 8: nothing that is asked for takes n, modulus; leave it out$"):
        jobs_of([theorem(taking, silent), theorem(silent, number="8")], Request(k=1, n=2, modulus=3))
    with pytest.raises(ValueError, match=r"^Theorem 7, 8: no case takes the options given \(n, modulus\); see verify"):
        jobs_of([theorem(silent), theorem(silent, number="8")], Request(n=2, modulus=3))


def test_proofs_are_a_job_of_their_own_at_the_end_of_their_theorem(tmp_path):
    (tmp_path / "Some.v").write_text("Theorem some : True. Proof. exact I. Qed.")
    listed = {"files": {"Some.v": {"digest": digest(tmp_path, "Some.v"), "theorems": ["some"]}}, "instances": ""}
    (tmp_path / "accepted.json").write_text(json.dumps(listed))
    proofs = (Proof("some", "Some.v", "it is so", tmp_path), Proof("other", "Some.v", "not listed", tmp_path))
    book = [theorem(section(case(4))), dataclasses.replace(theorem(section(case(4)), number="8"), proofs=proofs)]
    assert [(job.theorem, job.section, job.name) for job in jobs_of(book)] == [
        (0, 0, "value=4"), (1, 0, "value=4"), (1, 0, "machine-checked proofs")]
    rows = list(verify(book))
    assert [row for row in rows if row.means is Means.PROOF] == [
        Evidence("8", "proof:some", "it is so", "⊢", "proofs/Some.v", Scope.ALL, Means.PROOF, Verdict.HOLDS, Verdict.HOLDS,
                 remark="accepted without axioms")]
    assert [row.claim for row in verify(book, Request())] == ["four", "four", "proof:some"]


def test_an_erratum_is_judged_without_the_claims_beside_it():
    erratum = Erratum("e", "false", "Theorem 7", "It is not four.", PRINTED, ())
    book = [theorem(section(case(5), errata=(erratum,)), section(case(4)))]
    places = list(errata_cases(book))
    assert [found.name for _, _, found in places] == ["value=5"]
    assert [row.claim for place in places for row in judge_case(*place)] == ["printed"]


def test_theorems_are_selected_by_either_number():
    assert [t.number for t in select(CATALOGUE, ["6"])] == ["3 (6)"]
    assert [t.number for t in select(CATALOGUE, ["3", "1"])] == ["1", "3 (6)"]
    assert select(CATALOGUE, []) == CATALOGUE
    with pytest.raises(ValueError, match=r"no theorem '9'; there are 1, 2 \(5\), 3 \(6\), 4 \(7\)"):
        select(CATALOGUE, ["9"])


def two():
    return (theorem(section(case(4), case(5))), theorem(section(case(6)), number="8"))


def test_processes_give_the_same_rows_in_the_same_order():
    assert list(verify_in_parallel(two, [], None, 2)) == list(verify(two()))
    assert [row.theorem for row in verify_in_parallel(two, ["8"], None, 2)] == ["8"]


def test_as_many_processes_work_as_asked_for_and_none_is_waited_for_at_the_end(monkeypatch):
    seen: list[object] = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, workers):
            seen.append(workers)
            super().__init__(workers)

        def shutdown(self, wait=True, *, cancel_futures=False):
            seen.append((wait, cancel_futures))
            super().shutdown(wait, cancel_futures=cancel_futures)

    monkeypatch.setattr(verification, "ProcessPoolExecutor", Pool)
    rows = verify_in_parallel(two, [], None, 3)
    assert next(rows).case == "value=4"
    assert isinstance(rows, Generator)
    rows.close()
    assert seen[:2] == [3, (False, True)]
    assert [row.case for row in verify_in_parallel(asking, [], Request(k=5), 1)] == ["value=5"]


JOBS = [pytest.param(t, s, c, id=f"{t.key}: {c.name}") for t in CATALOGUE for s in t.sections for c in s.cases]


@pytest.mark.parametrize(("theorem", "section", "case"), JOBS)
def test_every_claim_of_the_book_has_the_expected_verdict(theorem, section, case):
    rows = judge_case(theorem, section, case)
    assert [(row.claim, row.witness) for row in rows if not row.is_expected] == []
    for found in rows:
        if found.verdict is Verdict.FAILS:
            assert found.witness is not None


@pytest.mark.parametrize(("theorem", "section", "case"), JOBS)
def test_an_instance_is_the_same_each_time(theorem, section, case):
    assert is_same(build(section, case), build(section, case))


def test_sameness_is_told_from_difference():
    for one, other in ((1, 2), ([1], [1, 1]), ({"a": 1}, {"b": 1}), (np.array([1, 2]), np.array([1, 3])),
                       (np.ones((1, 2)), np.ones((2, 1))), (IS_FOUR, PRINTED)):
        assert is_same(one, one)
        assert not is_same(one, other)
