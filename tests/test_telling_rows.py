"""What the tables say of a claim: its scope where two polynomials part, its strongest row, its weakest headline."""

import dataclasses
from itertools import permutations

from constructions.blocks import symbols
from iha_theory import POLYNOMIALS
from iha_theory import report as report_module
from iha_theory.claims import Case, Claim, Means, Relation, Scope, Verdict
from iha_theory.verification import judge_case, strongest
from tests.small_theorems import IS_FOUR, case, row, section, theorem


def test_two_polynomials_that_differ_do_so_at_some_input_only():
    def symbol(*, domain):
        return symbols({"x": (1, 1)})[0]["x"]

    claims = [Claim(name, "", relation, lambda x: x, right, expect, scope=scope) for name, relation, right, expect, scope in (
        ("apart", Relation.DIFFERENT, lambda x: x * x, Verdict.HOLDS, None),
        ("refuted", Relation.EQUAL, lambda x: x * x, Verdict.FAILS, None),
        ("identity", Relation.EQUAL, lambda x: x + 0, Verdict.HOLDS, None),
        ("graph", Relation.DIFFERENT, lambda x: x * x, Verdict.HOLDS, Scope.GRAPH),
        ("every size", Relation.DIFFERENT, lambda x: x * x, Verdict.HOLDS, Scope.ALL))]
    found = Case("n=1", POLYNOMIALS, Scope.SIZE)
    of_symbols = dataclasses.replace(section(found), instance=symbol, claims=tuple(claims))
    rows = {row.claim: row for row in judge_case(theorem(of_symbols), of_symbols, found)}
    assert {name: found.scope for name, found in rows.items()} == {
        "apart": Scope.INPUT, "refuted": Scope.INPUT, "identity": Scope.SIZE, "graph": Scope.INPUT, "every size": Scope.ALL}
    assert {found.verdict for found in rows.values()} == {Verdict.HOLDS, Verdict.FAILS}
    assert "not an identity" in rows["apart"].remark
    assert rows["identity"].remark == ""


def test_a_summary_reads_all_rows_of_a_claim_in_any_order():
    weak = row(Verdict.AGREES, scope=Scope.INPUT, means=Means.FLOAT)
    middle = row(Verdict.HOLDS, scope=Scope.GRAPH, means=Means.EXACT)
    strong = row(Verdict.HOLDS, scope=Scope.SIZE, means=Means.RESIDUE)
    bad = row(Verdict.FAILS, scope=Scope.INPUT)
    for rows in permutations((weak, middle, strong)):
        (line,) = report_module.summary_rows(rows, [theorem()])
        assert line[3:] == ("holds", "every input of this size", "residues", "3")
        assert strongest(rows) is strong
    for rows in permutations((weak, strong, bad)):
        (line,) = report_module.summary_rows(rows, [theorem()])
        assert line[3:] == ("fails (UNEXPECTED: holds was expected)", "this input", "exact", "3")
        assert "UNEXPECTED" in report_module.overview(rows, [theorem()])


def test_the_overview_knows_a_statement_as_well_as_its_weakest_headline_claim():
    claims = [row(Verdict.HOLDS, claim="a", scope=Scope.ALL), row(Verdict.HOLDS, claim="b", scope=Scope.GRAPH),
              row(Verdict.HOLDS, claim="c", scope=Scope.GRAPH, means=Means.RESIDUE), row(Verdict.AGREES, claim="d")]
    # Of one claim, the strongest row counts.
    claims.append(row(Verdict.AGREES, claim="c", scope=Scope.INPUT, means=Means.FLOAT))
    for names in permutations("abc"):
        book = [dataclasses.replace(theorem(section(case(4), claims=(IS_FOUR,))), headline=names)]
        for rows in (claims, claims[::-1]):
            line = report_module.overview(rows, book).splitlines()[2]
            assert "| every X on this graph, residues |" in line
    (line,) = report_module.overview(claims, [dataclasses.replace(theorem(), headline=("a",))]).splitlines()[2:]
    assert "| every size, exact |" in line
