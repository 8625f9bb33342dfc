"""What a figure rests on: claims of the catalogue that stand, or it is not drawn."""

from dataclasses import replace

import pytest

from figures import NAMES, Disappointed, evidence, rendered
from figures.__main__ import main
from iha_theory.claims import Verdict
from tests.drawn_figures import module


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_names_claims_of_the_catalogue_and_they_stand(name):
    claims = module(name).CLAIMS
    assert claims
    assert all(evidence.stands(evidence.rows(claim)) for claim in claims)


def test_a_figure_is_refused_when_a_claim_of_it_fails(monkeypatch, capsys, tmp_path):
    found = evidence.rows("2/flat-largest")
    wrong = tuple(replace(row, verdict=Verdict.FAILS) for row in found)
    monkeypatch.setattr(evidence, "rows", lambda name: wrong if name == "2/flat-largest" else found)
    with pytest.raises(Disappointed, match="2/flat-largest: fails on p, J/P symbolic"):
        rendered("flat_causal")
    assert main(["flat_causal", "--out", str(tmp_path)]) == 1
    assert "2/flat-largest" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_claims_that_no_case_speaks_of_do_not_stand():
    assert not evidence.stands([])
    with pytest.raises(ValueError, match="no claim '2/nonsense'"):
        evidence.rows("2/nonsense")


def test_the_foot_says_what_is_known_and_how():
    text = evidence.standing("2/flat-largest", "2/flat-printed", "Crossovers/smaller")
    assert text == ("2/flat-largest, Crossovers/smaller: holds (every size, exact); "
                    "2/flat-printed: fails, as expected of what is printed")
