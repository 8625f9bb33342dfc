"""The commands errata, claims and show: what a reader is told."""

import dataclasses

import iha_theory.commands as commands
from iha_theory.claims import Verdict


def test_errata_show_what_is_printed_and_what_holds(run):
    code, out, _ = run("errata", "3")
    assert code == 0
    assert "1. thm3-k4 (misprint)" in out
    assert "fails, as expected" in out
    assert "witness [0, 2]:" in out
    assert out.rstrip().endswith("1 errata")


def test_claims_are_listed_without_computing(run):
    code, out, _ = run("claims")
    assert code == 0
    assert "3/bank  [=]" in out
    assert "stated, not checked" in out


def test_show_a_worked_example_and_a_claim(run):
    code, out, _ = run("show", "k4")
    assert code == 0
    for stage in ("input", "w_q", "alpha_q", "pseudo-queries", "scores", "attention", "output"):
        assert f"--- {stage}" in out
    assert run("show", "k4", "--format", "markdown")[1].startswith("# k = 4")


def test_a_claim_is_shown_with_both_sides_and_its_verdict(run):
    code, out, _ = run("show", "4/shifts")
    assert code == 0
    side = "(row x column)\n    | 0  1  2\n0   | 2  3  7\n1   | 3  7  2\n2   | 7  2  3\n"
    assert out == (
        "4/shifts: the first N columns are all cyclic shifts of the tokens\n"
        "case: N=3, H=2, P=2, tokens 2, 3, 7; indices count from 0, dots are zeros\n\n"
        f"left side, the layer's output:\n{side}\n"
        f"right side, row i is x_i, x_(i+1), ..., cyclically:\n{side}\n"
        "claimed: left = right, element by element\n"
        "verdict: holds [this input, exact]\n")
    code, out, _ = run("show", "3/bank")
    assert code == 0
    assert out.count("\n[0, 1]  a0_0*x0_0 + a0_1*x1_0\n") == 2
    assert "verdict: holds [every input of this size, exact]" in out


def test_a_printed_claim_is_shown_to_fail_and_where(run):
    code, out, _ = run("show", "1/conclusion-printed")
    assert code == 0
    assert out.endswith("left side: 3\n\nright side: 1\n\nclaimed, as printed: left ≤ right, element by element\n"
                        "verdict: fails, as expected [every input of this size, exact]\nwitness 3 against 1\n")


def test_a_claim_that_is_shown_and_disappoints_is_exit_code_1(run, monkeypatch):
    judge = commands.judge_case
    monkeypatch.setattr(commands, "judge_case", lambda *case: [
        dataclasses.replace(row, verdict=Verdict.FAILS) for row in judge(*case)])
    code, out, _ = run("show", "4/shifts")
    assert code == 1
    assert "verdict: fails (UNEXPECTED: holds was expected)" in out
