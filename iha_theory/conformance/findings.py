"""What the kit finds: evidence with a status, and what to do about it; a report of it as a table, JSON or a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Any

from iha_theory.claims import Evidence
from iha_theory.report import as_json

CONFORMS, DIFFERS, NOT_APPLICABLE = "conforms", "differs", "not applicable"


@dataclass(frozen=True)
class Finding(Evidence):
    """One property of a layer, judged. ``claim`` is the property's key, ``case`` what it was tried on.

    Attributes:
        applies: whether the property can be judged; if not, ``remark`` says why.
        meaning: where it differs: what that means and how to mend it.
    """

    applies: bool = True
    meaning: str = ""

    @property
    def key(self) -> str:
        """The property's name."""
        return self.claim

    @property
    def status(self) -> str:
        """``conforms``, ``differs`` or ``not applicable``."""
        if not self.applies:
            return NOT_APPLICABLE
        return CONFORMS if self.is_expected else DIFFERS

    @property
    def conforms(self) -> bool:
        """Whether nothing speaks against the layer: it conforms, or the property does not apply."""
        return self.status != DIFFERS

    @property
    def found(self) -> str:
        """What was seen, with the place where the two sides part."""
        parts = [self.remark] if self.remark else []
        if self.witness is not None:
            parts.append(f"at {self.witness}" if self.witness.index else str(self.witness))
        return "; ".join(parts)

    def __str__(self) -> str:
        text = f"{self.key}: {self.status}: {self.says}"
        if self.found:
            text += f"\n  found: {self.found} ({self.case})"
        return text + (f"\n  {self.meaning}" if self.status == DIFFERS else "")


@dataclass(frozen=True)
class Report:
    """All findings about a layer, in the order of the properties."""

    layer: str
    findings: tuple[Finding, ...]

    @property
    def differs(self) -> tuple[str, ...]:
        """The keys of the properties in which the layer differs."""
        return tuple(row.key for row in self.findings if row.status == DIFFERS)

    @property
    def conforms(self) -> bool:
        """Whether no property differs."""
        return not self.differs

    def summary(self) -> str:
        """One line: the counts, and what differs."""
        counts = {status: sum(row.status == status for row in self.findings)
                  for status in (CONFORMS, DIFFERS, NOT_APPLICABLE)}
        named = f": {', '.join(self.differs)}" if self.differs else ""
        blind = any(row.key == "algorithm 1" and row.status == NOT_APPLICABLE for row in self.findings)
        blind = blind and "runs" not in self.differs
        unseen = ". The weights are not named: whether it is IHA was not judged" if blind else ""
        return (f"{self.layer}: {counts[CONFORMS]} conform, {counts[DIFFERS]} differ{named}; "
                f"{counts[NOT_APPLICABLE]} not applicable{unseen}")

    def text(self) -> Iterator[str]:
        """The report for a terminal, line by line: a line for each property, then what each difference means."""
        width = max(len(row.key) for row in self.findings)
        for row in self.findings:
            mark = {CONFORMS: "conforms", DIFFERS: "DIFFERS", NOT_APPLICABLE: "-"}[row.status]
            first, *more = wrap(row.found or "-", 118 - width - 12)
            yield f"{row.key:<{width}}  {mark:<8}  {first}"
            yield from (" " * (width + 12) + line for line in more)
        for row in self.findings:
            if row.status == DIFFERS:
                yield ""
                yield f"{row.key} (tried on {row.case})"
                yield from wrap(f"Asked: {row.says}.", 112, initial_indent="  ", subsequent_indent="  ")
                yield from wrap(row.meaning, 112, initial_indent="  ", subsequent_indent="  ")
        yield ""
        yield self.summary()

    def markdown(self) -> str:
        """A Markdown table to paste into an issue: a line for each property."""
        lines = [f"### Audit of `{self.layer}`", "", "| property | verdict | found | what it means |", "|---|---|---|---|"]
        for row in self.findings:
            status = f"**{row.status}**" if row.status == DIFFERS else row.status
            found = f"{row.found} ({row.case})" if row.case != "-" else row.found
            cells = (row.key, status, found, row.meaning if row.status == DIFFERS else row.says)
            lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
        return "\n".join([*lines, "", self.summary()]) + "\n"

    def to_json(self) -> str:
        """One JSON object: the layer's name, whether it conforms, and the findings."""
        rows: list[dict[str, Any]] = json.loads(as_json(self.findings))
        for row, finding in zip(rows, self.findings, strict=True):
            row |= {"status": finding.status, "meaning": finding.meaning}
        return json.dumps({"layer": self.layer, "conforms": self.conforms, "differs": list(self.differs),
                           "findings": rows}, indent=1, ensure_ascii=False) + "\n"

    def to_html(self) -> str:
        """A page that stands alone."""
        return page(self.layer, self.summary(), self.findings)


def page(layer: str, summary: str, findings: Sequence[Finding]) -> str:
    """The findings as an HTML page, without scripts and without anything from elsewhere."""
    rows = []
    for row in findings:
        kind = row.status.replace(" ", "-")
        meaning = f'<p class="meaning">{escape(row.meaning)}</p>' if row.status == DIFFERS else ""
        rows.append(f'<tr class="{kind}"><th scope="row">{escape(row.key)}</th><td class="status">{escape(row.status)}</td>'
                    f'<td><p>{escape(row.says)}</p>{meaning}</td><td>{escape(row.found) or "-"}</td>'
                    f'<td>{escape(row.case)}</td></tr>')
    return _PAGE.format(layer=escape(layer), summary=escape(summary), rows="\n".join(rows))


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Audit of {layer}</title>
<style>
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; color: #1b1f24; }}
h1 {{ font-size: 1.4rem; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; vertical-align: top; padding: .5rem .6rem; border-top: 1px solid #d0d7de; }}
th[scope=row] {{ white-space: nowrap; font-weight: 600; }}
p {{ margin: 0; overflow-wrap: anywhere; }}
td {{ overflow-wrap: anywhere; }}
.meaning {{ margin-top: .4rem; }}
td:last-child {{ min-width: 10rem; }}
.status {{ white-space: nowrap; }}
.conforms .status {{ color: #0b6b37; }}
.differs {{ background: #fff1ec; }}
.differs .status {{ color: #a3250b; font-weight: 700; }}
.not-applicable {{ color: #57606a; }}
</style>
</head>
<body>
<h1>Audit of {layer}</h1>
<p>{summary}</p>
<table>
<thead><tr><th>property</th><th>verdict</th><th>what is asked, and what a difference means</th><th>found</th>
<th>tried on</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</body>
</html>
"""
