"""What the rows of the book say of themselves: names of cases, scopes that differ from the case's, sides, bounds."""

import pytest

from constructions.counting_pipeline import PIPELINE
from constructions.inclusion_sections import INCLUSION
from constructions.lower_bounds import MEETING
from constructions.operator_span import SPAN
from constructions.reduction_sections import REDUCTIONS
from constructions.temperature import ROUNDING
from constructions.theorem_1_operator_count import HEADS
from constructions.theorem_3_polynomial_filter import FEWER_PSEUDO_HEADS, HALVED, IHA_BANK
from constructions.theorem_4_cpm3 import LAYER
from iha_theory import FLOATS
from iha_theory.claims import Scope
from iha_theory.verification import build

BANK = ("the layer's output", "[X, AX, ..., A^(k-1) X] by repeated multiplication")


def claim(section, name):
    return next(claim for claim in section.claims if claim.id == name)


@pytest.mark.parametrize(("section", "names"), [
    (HEADS, ("parameters",)), (INCLUSION, ("parameters",)), (IHA_BANK, ("parameters", "heads")),
    (FEWER_PSEUDO_HEADS, ("parameters-tiled", "fewer")), (HALVED, ("parameters-signed", "two")),
    (PIPELINE, ("hidden", "units", "relu-units")),
    (REDUCTIONS, ("reduction-base-heads", "reduction-pseudo-heads", "reduction-value-heads")),
    (SPAN, ("operators-multi-head", "operators-grouped-query", "operators-multi-query", "operators-talking-heads",
            "operators-iha")),
])
def test_a_count_speaks_of_a_size_whatever_the_input(section, names):
    assert tuple(claim.id for claim in section.claims if claim.scope is Scope.SIZE) == names


@pytest.mark.parametrize(("section", "name", "sides"), [
    *((section, section.claims[0].id, BANK) for section in MEETING), (HEADS, "bank", BANK), (IHA_BANK, "bank", BANK),
    *((INCLUSION, name, ("the layer's output", "that of multi-head attention"))
      for name in ("inclusion", "inclusion-token", "inclusion-flat")),
    (LAYER, "shifts", ("the layer's output", "row i is x_i, x_(i+1), ..., cyclically")),
])
def test_the_sides_of_an_equality_have_names(section, name, sides):
    assert claim(section, name).sides == sides


def test_cases_are_named_by_their_kind_and_sizes():
    names = [case.name for case in REDUCTIONS.cases]
    assert names[:2] == ["random integers weights and input, n=2, D=2, H=1, P=2, d_k=1, d_v=1",
                         "symbolic weights and input, n=2, D=3, H=1, P=2, d_k=2, d_v=1, features=1"]
    assert [case.scope for case in REDUCTIONS.cases[:2]] == [Scope.INPUT, Scope.SIZE]
    assert [case.name for case in ROUNDING.cases[:2]] == ["N=2, D=2, multi-head attention, every input",
                                                          "N=2, D=1, every input"]


def test_the_operators_are_counted_in_heads_and_pseudo_heads():
    assert claim(SPAN, "operators-iha").says == "it has H P^2 operators"
    assert claim(SPAN, "operators-talking-heads").says == "it has H operators"


def test_positions_that_must_vanish_vanish_without_a_rounding():
    case = next(case for case in IHA_BANK.cases if case.domain is FLOATS)
    bound = claim(IHA_BANK, "positions").bound
    assert bound is not None
    assert bound(build(IHA_BANK, case)) == 0
