"""What the report makes of rows: the table, the coverage, JSON, Markdown, the page of errata."""

import dataclasses
import json

from constructions import CATALOGUE
from iha_theory import report
from iha_theory.claims import Means, Scope, Verdict, Witness
from iha_theory.verification import errata_cases, judge_case
from tests.small_theorems import row, theorem


def test_the_table_shows_scope_means_verdict_and_witness():
    rows = [row(Verdict.HOLDS), row(Verdict.FAILS, witness=Witness((0, 1), "1", "2")),
            row(Verdict.AGREES, means=Means.FLOAT, remark="bound 1e-9")]
    text = "\n".join(report.table(rows, [theorem()]))
    assert "Theorem 7: Numbers" in text
    assert "n=1  every input of this size  exact                   holds" in text
    assert "fails (UNEXPECTED: holds was expected)" in text
    assert "witness [0, 1]: 1 against 2" in text
    assert "float64 within a bound  agrees  bound 1e-9" in text


def test_coverage_shows_what_is_not_checked():
    text = list(report.coverage([row(Verdict.HOLDS)], [theorem(), dataclasses.replace(theorem(), number="Appendix Z")]))
    assert text[2].split() == ["Theorem", "7", "four", "holds", "every", "input", "of", "this", "size", "exact", "1"]
    assert "stated, not checked" in text[3]
    assert text[3].startswith("Appendix Z")


def test_coverage_never_shows_a_failure_as_its_strongest_evidence():
    text = "\n".join(report.coverage([row(Verdict.HOLDS), row(Verdict.FAILS)], [theorem()]))
    assert "fails (UNEXPECTED: holds was expected)" in text
    expected = [row(Verdict.HOLDS), row(Verdict.FAILS, Verdict.FAILS, scope=Scope.ALL)]
    assert "every size" not in "\n".join(report.coverage(expected, [theorem()]))
    bad = "\n".join(report.coverage([row(Verdict.FAILS)], [theorem()]))
    assert "UNEXPECTED" in bad


def test_json_is_complete_and_plain():
    witness = Witness((0,), "1", "2")
    (found,) = json.loads(report.as_json([row(Verdict.FAILS, Verdict.FAILS, witness=witness, erratum="e")]))
    assert found == {
        "theorem": "7", "claim": "four", "says": "says", "relation": "=", "case": "n=1", "scope": "SIZE",
        "means": "EXACT", "verdict": "FAILS", "expected": "FAILS", "is_expected": True,
        "witness": {"index": [0], "left": "1", "right": "2"}, "remark": "", "erratum": "e",
    }


def test_markdown_escapes_bars():
    text = report.markdown([row(Verdict.HOLDS, claim="a|b")], [theorem()])
    assert "`a\\|b`: says" in text
    assert text.count("\n") == 3


def test_the_page_of_errata_has_a_heading_and_a_link_for_each():
    theorems = [chosen for chosen in CATALOGUE if chosen.key == "3"]
    rows = [row for place in errata_cases(theorems) for row in judge_case(*place)]
    page = report.errata_page(rows, theorems)
    assert page.startswith("1. [thm3-k4](#thm3-k4) (misprint): the k = 4 example")
    assert page.count("\n## thm3-k4\n\n*misprint*: the k = 4 example") == 1
    listed = "\n".join(report.errata(rows, theorems))
    found = page.split("```text\n")[1].split("\n```")[0]
    assert found.startswith("tested as printed: ")
    assert "witness [0, 2]" in found
    assert "\n".join(f"   {line}" for line in found.splitlines()) in listed


def test_every_erratum_has_an_id_of_its_own():
    names = [erratum.id for chosen in CATALOGUE for erratum in chosen.errata]
    assert len(set(names)) == len(names) > 10
