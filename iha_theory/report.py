"""Evidence for people: a table, a summary, the errata, JSON. It reads rows and computes no mathematics."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from textwrap import wrap
from typing import Any

from iha_theory.claims import Claim, Erratum, Evidence, Means, Scope, Theorem, Verdict
from iha_theory.display import readable
from iha_theory.verification import claims_of, strongest

SCOPES = {
    Scope.INPUT: "this input",
    Scope.GRAPH: "every X on this graph",
    Scope.SIZE: "every input of this size",
    Scope.ALL: "every size",
}
MEANS = {
    Means.FLOAT: "float64 within a bound",
    Means.BALL: "enclosure",
    Means.RESIDUE: "residues",
    Means.EXACT: "exact",
    Means.PROOF: "machine-checked proof",
}
LEGEND = """How to read a row. Its scope says what the verdict speaks of: this input < every X on this graph < every input of
this size < every size. Its means say how it is known: float64 < enclosure < residues < exact < machine-checked proof.
"agrees": an equality that rounding or an enclosure cannot refute, never more. A printed statement that does not hold
"fails" with a witness: the index where the two sides part, and both values, the left side (the layer's, where there is
one) first; what holds instead stands below it."""


def verdict_text(row: Evidence) -> str:
    """The verdict in words, with a mark where it is not the expected one."""
    text = row.verdict.value
    if not row.is_expected:
        return f"{text} (UNEXPECTED: {row.expect.value} was expected)"
    return f"{text}, as expected" if row.verdict is Verdict.FAILS else text


def table(rows: Iterable[Evidence], catalogue: Sequence[Theorem]) -> Iterator[str]:
    """The full table, line by line: for each claim its sentence, then one line for each case."""
    titles = {theorem.number: theorem.title for theorem in catalogue}
    for number, of_theorem in groupby(rows, key=lambda row: row.theorem):
        name = heading(number)
        yield ""
        yield f"{name}: {titles[number]}"
        yield "=" * (len(name) + 2 + len(titles[number]))
        claims: dict[str, list[Evidence]] = {}
        for row in of_theorem:
            claims.setdefault(row.claim, []).append(row)
        for found in claims.values():
            kind = f"erratum {found[0].erratum}, " if found[0].erratum else ""
            printed = "printed: " if found[0].expect is Verdict.FAILS else ""
            yield f"  {found[0].claim}: {kind}{printed}{found[0].says}"
            width = min(56, max(len(row.case) for row in found))
            for row in found:
                known = f"{SCOPES[row.scope]:<24}  {MEANS[row.means]:<22}"
                note = f"  {row.remark}" if row.remark else ""
                yield f"      {row.case:<{width}}  {known}  {verdict_text(row)}{note}"
                if row.witness is not None:
                    yield f"      {'':<{width}}  witness {row.witness}"


def heading(number: str) -> str:
    """``Theorem 3 (6)`` for a theorem's number, the text itself for an appendix."""
    return f"Theorem {number}" if number[0].isdigit() else number


def grid(header: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table of left-aligned columns, line by line."""
    widths = [max(len(cell) for cell in column) for column in zip(header, *lines, strict=True)]
    for line in (header, ["-" * width for width in widths], *lines):
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def summary_rows(rows: Sequence[Evidence], catalogue: Sequence[Theorem]) -> list[tuple[str, ...]]:
    """For each claim: theorem, claim, sentence, verdict, strongest scope and means, number of cases.

    A numbered result without evidence has one row, ``stated, not checked``.
    """
    lines: list[tuple[str, ...]] = []
    for theorem in catalogue:
        mine = [row for row in rows if row.theorem == theorem.number]
        if not mine:
            lines.append((heading(theorem.number), "-", theorem.statement, "stated, not checked", "-", "-", "0"))
        for claim in dict.fromkeys(row.claim for row in mine):
            found = [row for row in mine if row.claim == claim]
            best = _telling(found)
            says = f"printed: {best.says}" if best.expect is Verdict.FAILS else best.says
            lines.append((heading(theorem.number), claim, says, verdict_text(best), SCOPES[best.scope],
                          MEANS[best.means], str(len(found))))
    return lines


def _telling(rows: Sequence[Evidence]) -> Evidence:
    """The row that speaks for a claim: one that is not as expected if there is any, else the strongest."""
    unexpected = [row for row in rows if not row.is_expected]
    best = None if unexpected else strongest(rows)
    return best or max(unexpected or rows, key=lambda row: (row.scope, row.means))


def coverage(rows: Sequence[Evidence], catalogue: Sequence[Theorem]) -> Iterator[str]:
    """The closing table: every numbered statement, its claims, and the strongest evidence for each."""
    lines = [(number, claim, verdict, scope, means, cases)
             for number, claim, _, verdict, scope, means, cases in summary_rows(rows, catalogue)]
    yield from grid(("statement", "claim", "verdict", "strongest scope", "means", "cases"), lines)


def markdown(rows: Sequence[Evidence], catalogue: Sequence[Theorem]) -> str:
    """The summary as a Markdown table, for the README."""
    lines = ["| statement | claim | verdict | holds for | known by | cases |", "|---|---|---|---|---|---|"]
    for number, claim, says, verdict, scope, means, cases in summary_rows(rows, catalogue):
        cells = (number, f"`{claim}`: {says}" if claim != "-" else says, verdict, scope, means, cases)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def overview(rows: Sequence[Evidence], catalogue: Sequence[Theorem]) -> str:
    """One Markdown row for each statement: how strongly its headline is known here, what is proved, how many errata."""
    lines = ["| statement | in one sentence | checked here at least for | for every size | claims | errata |",
             "|---|---|---|---|---|---|"]
    for theorem in catalogue:
        mine = [row for row in rows if row.theorem == theorem.number]
        proved = [row for row in mine if row.means is Means.PROOF]
        headline = [[row for row in mine if row.claim == claim] for claim in theorem.headline]
        telling = [_telling(found) for found in headline if found]
        # A statement is known as well as the weakest of the claims that make it up.
        best = min(telling, key=lambda row: (not row.is_expected, row.scope, row.means), default=None)
        known = f"{SCOPES[best.scope]}, {MEANS[best.means]}" if best else "stated, not checked"
        if any(not row.is_expected for row in mine):
            known = "UNEXPECTED verdicts: see the table"
        proof = f"machine-checked proof ({len(proved)} theorems)" if proved else "-"
        if best and best.scope is Scope.ALL and not proved:
            proof = "exact certificate"
        count = len({row.claim for row in mine if row.means is not Means.PROOF})
        cells = (heading(theorem.number), theorem.statement, known, proof, str(count), str(len(theorem.errata)))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def errata(rows: Sequence[Evidence], catalogue: Sequence[Theorem]) -> Iterator[str]:
    """Every erratum: where, what is printed, what was found and with which witness, and what holds instead."""
    found = _errata_of(catalogue)
    for number, (theorem, erratum) in enumerate(found, start=1):
        yield f"{number}. {erratum.id} ({erratum.kind}): {erratum.where}"
        yield from wrap(erratum.says, 112, initial_indent="   ", subsequent_indent="   ")
        yield from (f"   {line}" for line in _tested(rows, theorem, erratum))
        yield ""
    yield f"{len(found)} errata"


def _errata_of(catalogue: Sequence[Theorem]) -> list[tuple[Theorem, Erratum]]:
    return [(theorem, erratum) for theorem in catalogue for erratum in theorem.errata]


def _tested(rows: Sequence[Evidence], theorem: Theorem, erratum: Erratum) -> Iterator[str]:
    """What was found for each claim of an erratum, on each case."""
    for claim in (erratum.printed, *erratum.corrected):
        label = "tested as printed" if claim is erratum.printed else "holds instead"
        yield f"{label}: {claim.says}"
        for row in rows:
            if row.theorem == theorem.number and row.claim == claim.id:
                yield f"   {verdict_text(row)}: {row.case} {_known(row)}"
                if row.witness is not None:
                    yield f"   witness {row.witness}"


def _known(row: Evidence) -> str:
    return f"[{SCOPES[row.scope]}, {MEANS[row.means]}]"


def errata_page(rows: Sequence[Evidence], catalogue: Sequence[Theorem]) -> str:
    """The errata as Markdown: a list of links, then a heading for each, which is its id and so its anchor."""
    found = _errata_of(catalogue)
    lines = [f"{number}. [{erratum.id}](#{erratum.id}) ({erratum.kind}): {erratum.where}"
             for number, (_, erratum) in enumerate(found, start=1)]
    for theorem, erratum in found:
        lines += ["", f"## {erratum.id}", "", f"*{erratum.kind}*: {erratum.where}", "",
                  *wrap(erratum.says, 120), "", "```text", *_tested(rows, theorem, erratum), "```"]
    return "\n".join(lines) + "\n"


def sides(name: str, claim: Claim, left: Any, right: Any, row: Evidence) -> Iterator[str]:
    """One claim on one case: both sides, what relates them, and the verdict.

    Args:
        name: the claim's, with its theorem. left, right: the sides on the case of ``row``.
    """
    yield f"{name}: {claim.says}"
    yield f"case: {row.case}; indices count from 0, dots are zeros"
    for place, side, what in (("left", left, claim.sides[0]), ("right", right, claim.sides[1])):
        text = readable(side)
        title = f"{place} side, {what}" if what else f"{place} side"
        yield f"\n{title}:\n{text}" if "\n" in text else f"\n{title}: {text}"
    printed = ", as printed" if claim.expect is Verdict.FAILS else ""
    yield f"\nclaimed{printed}: left {claim.relation.value} right, element by element"
    yield f"verdict: {verdict_text(row)} {_known(row)}{f'  {row.remark}' if row.remark else ''}"
    if row.witness is not None:
        yield f"witness {row.witness}"


def claims(catalogue: Sequence[Theorem]) -> Iterator[str]:
    """Every claim as an equation in words, with the theorem it belongs to; nothing is computed."""
    for theorem in catalogue:
        yield f"{heading(theorem.number)}: {theorem.title} [{theorem.source}]"
        yield f"  {theorem.statement}"
        for section in theorem.sections:
            for claim, erratum in claims_of(section):
                kind = f"  (erratum {erratum}{', printed' if claim.expect is Verdict.FAILS else ''})" if erratum else ""
                yield f"    {theorem.key}/{claim.id}  [{claim.relation.value}]  {claim.says}{kind}"
        if not theorem.sections:
            yield "    stated, not checked"


def as_json(rows: Iterable[Evidence]) -> str:
    """The rows as one JSON document: a list of objects, in order, without times or machine."""
    return json.dumps([_plain(row) for row in rows], indent=1, ensure_ascii=False) + "\n"


def _plain(row: Evidence) -> dict[str, Any]:
    witness = row.witness
    return {
        "theorem": row.theorem,
        "claim": row.claim,
        "says": row.says,
        "relation": row.relation,
        "case": row.case,
        "scope": row.scope.name,
        "means": row.means.name,
        "verdict": row.verdict.name,
        "expected": row.expect.name,
        "is_expected": row.is_expected,
        "witness": None if witness is None else
        {"index": list(witness.index), "left": witness.left, "right": witness.right},
        "remark": row.remark,
        "erratum": row.erratum,
    }
