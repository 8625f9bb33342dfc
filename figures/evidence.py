"""What a figure rests on: the claims of the catalogue, judged anew before anything is drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from constructions import CATALOGUE
from figures import Disappointed
from iha_theory.claims import Claim, Evidence, Section, Theorem, Verdict
from iha_theory.report import MEANS, SCOPES
from iha_theory.verification import claims_of, judge_case, strongest


@cache
def rows(name: str) -> tuple[Evidence, ...]:
    """The evidence for one claim on all its worked cases.

    Args:
        name: the theorem's key and the claim, for example ``2/tanh``.

    Raises:
        ValueError: there is no such claim.
    """
    theorem, section, claim = _place(name)
    alone = replace(section, claims=(claim,), errata=())
    return tuple(row for case in alone.cases for row in judge_case(theorem, alone, case))


def _place(name: str) -> tuple[Theorem, Section, Claim]:
    for theorem in CATALOGUE:
        for section in theorem.sections:
            for claim, _ in claims_of(section):
                if f"{theorem.key}/{claim.id}" == name:
                    return theorem, section, claim
    raise ValueError(f"no claim {name!r} in the catalogue; see iha-theory claims")


def stands(found: Iterable[Evidence]) -> bool:
    """Whether there is a row, and every one is as expected: a printed statement that is false fails."""
    listed = list(found)
    return bool(listed) and all(row.is_expected for row in listed)


def standing(*names: str) -> str:
    """The claims with their strongest verdicts, in one line for the foot of a figure.

    Raises:
        Disappointed: a claim is not judged as expected.
    """
    by_verdict: dict[str, list[str]] = {}
    for name in names:
        found = rows(name)
        if not stands(found):
            wrong = next((row for row in found if not row.is_expected), None)
            raise Disappointed(f"{name}: {'no case' if wrong is None else f'{wrong.verdict.value} on {wrong.case}'}; "
                               "run iha-theory verify and mend it before drawing")
        by_verdict.setdefault(_verdict(strongest(found)), []).append(name)
    return "; ".join(f"{', '.join(listed)}: {verdict}" for verdict, listed in by_verdict.items())


def _verdict(best: Evidence | None) -> str:
    if best is None:
        return f"{Verdict.FAILS.value}, as expected of what is printed"
    return f"{best.verdict.value} ({SCOPES[best.scope]}, {MEANS[best.means]})"
