"""The checks are checked: every weight entry bears load or is declared free, and every claim can fail.

Nothing here knows a theorem. A section's first case is its smallest: there every entry of every weight is changed by
+1, by -1, to 0 and in sign, and the claims are judged again.
"""

import dataclasses

import numpy as np
import pytest

from constructions import CATALOGUE
from iha_theory.attention import linear
from iha_theory.claims import Case, Claim, Mutant, Relation, Scope, Section, Theorem
from iha_theory.layer import IHA, forward, multi_head
from iha_theory.scalars import INTEGERS
from iha_theory.verification import build, claims_of, judge

SECTIONS = [pytest.param(section, id=f"{theorem.key}: {section.title}")
            for theorem in CATALOGUE for section in theorem.sections]


def weights_of(instance):
    fields = [field.name for field in dataclasses.fields(instance)]
    return {name: getattr(instance, name) for name in fields if isinstance(getattr(instance, name), IHA)}


def verdicts(section, case, instance):
    return {claim.id: judge(claim, case, instance).verdict for claim, _ in claims_of(section) if claim.applies(instance)}


def moves(value):
    return [new for new in (value + 1, value - 1, value - value, -value) if new != value]


def moved(instance, field, name, index, new):
    weights = getattr(instance, field)
    array = weights.fields()[name].copy()
    array[index] = new
    return dataclasses.replace(instance, **{field: dataclasses.replace(weights, **{name: array})})


def entries_not_as_declared(section):
    """(weight, index, what is wrong) for idle entries that are not declared free and free ones that matter; and the
    claims that some move flipped."""
    case = section.cases[0]
    instance = build(section, case)
    before = verdicts(section, case, instance)
    free = section.free(instance) if section.free else {}
    wrong, flipped = [], set()
    for field, weights in weights_of(instance).items():
        for name, array in weights.fields().items():
            declared = np.broadcast_to(free.get(f"{field}.{name}", False), array.shape)
            for index in np.ndindex(array.shape):
                changed = set()
                for new in moves(array[index]):
                    after = verdicts(section, case, moved(instance, field, name, index, new))
                    changed |= {claim for claim in before if after[claim] is not before[claim]}
                flipped |= changed
                if bool(changed) == bool(declared[index]):
                    wrong.append((f"{field}.{name}", index, "declared free, but matters" if changed else "idle"))
    return wrong, flipped


def claims_that_cannot_fail(section, flipped):
    """The claims that neither a move nor a mutant flips, on the first case that a mutant's claim speaks of."""
    alive = {claim.id for claim, _ in claims_of(section)} - flipped
    for mutant in section.mutants:
        for case in section.cases:
            if not alive & set(mutant.flips) or "primes" in case.parameters:
                continue
            instance = build(section, case)
            before = verdicts(section, case, instance)
            if set(mutant.flips) & set(before):
                after = verdicts(section, case, mutant.change(instance))
                alive -= {claim for claim in mutant.flips if claim in before and after.get(claim) is not before[claim]}
    return alive


@pytest.mark.parametrize("section", SECTIONS)
def test_every_weight_entry_bears_load_or_is_declared_free_and_every_claim_can_fail(section):
    wrong, flipped = entries_not_as_declared(section)
    assert wrong == []
    assert claims_that_cannot_fail(section, flipped) == set()


@pytest.mark.parametrize("section", SECTIONS)
def test_every_mutant_flips_the_claims_that_it_names(section):
    for mutant in section.mutants:
        unflipped = set(mutant.flips)
        for case in section.cases:
            if not unflipped or "primes" in case.parameters:
                continue
            instance = build(section, case)
            before = verdicts(section, case, instance)
            if unflipped & set(before):
                after = verdicts(section, case, mutant.change(instance))
                unflipped -= {c for c in unflipped if c in before and c in after and after[c] is not before[c]}
        assert unflipped == set(), mutant.says


@pytest.mark.parametrize("theorem", CATALOGUE, ids=lambda theorem: theorem.number)
def test_ids_are_unique_and_every_erratum_has_a_correction(theorem):
    ids = [claim.id for section in theorem.sections for claim, _ in claims_of(section)]
    assert len(ids) == len(set(ids))
    for erratum in theorem.errata:
        assert erratum.corrected
        assert erratum.kind in ("misprint", "false", "gap")


# A planted theorem: its claim compares the target with itself, so that nothing could refute it.


@dataclasses.dataclass(frozen=True)
class Vacuous:
    weights: IHA
    x: np.ndarray

    @property
    def output(self):
        return forward(self.weights, self.x, linear)


def vacuous_section(left):
    one = INTEGERS.array([[[2]]])
    weights = multi_head(one, one, one)
    return Section("planted", lambda *, domain: Vacuous(weights, INTEGERS.array([[3]])),
                   (Case("n=1", INTEGERS, Scope.INPUT),),
                   (Claim("planted", "the output is itself", Relation.EQUAL, left, lambda i: INTEGERS.array([[216]])),))


def test_a_vacuous_claim_is_caught_by_both():
    section = vacuous_section(lambda i: INTEGERS.array([[216]]))
    wrong, flipped = entries_not_as_declared(section)
    assert len(wrong) == 3
    assert claims_that_cannot_fail(section, flipped) == {"planted"}


def test_the_same_claim_about_the_output_is_not():
    section = vacuous_section(lambda i: i.output)
    wrong, flipped = entries_not_as_declared(section)
    assert wrong == []
    assert claims_that_cannot_fail(section, flipped) == set()


def test_a_free_entry_that_matters_is_caught():
    section = dataclasses.replace(vacuous_section(lambda i: i.output),
                                  free=lambda i: {"weights.w_q": np.ones((1, 1, 1), dtype=bool)})
    wrong, _ = entries_not_as_declared(section)
    assert wrong == [("weights.w_q", (0, 0, 0), "declared free, but matters")]


def test_a_mutant_that_flips_nothing_is_caught():
    section = dataclasses.replace(vacuous_section(lambda i: INTEGERS.array([[216]])),
                                  mutants=(Mutant("nothing", lambda i: i, ("planted",)),))
    assert claims_that_cannot_fail(section, set()) == {"planted"}
    assert isinstance(Theorem("0", "", "", "", (section,)).errata, tuple)
