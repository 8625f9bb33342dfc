"""Every record of the catalogue is complete: sentences where a reader expects one, and names that agree with the sizes."""

import re

import pytest

from constructions import CATALOGUE
from iha_theory.claims import Relation, Scope, Verdict
from iha_theory.scalars import BALLS, FLOATS, POLYNOMIALS, RESIDUES, Domain
from iha_theory.verification import claims_of

SECTIONS = [pytest.param(section, id=f"{theorem.key}: {place}")
            for theorem in CATALOGUE for place, section in enumerate(theorem.sections)]


def is_text(value):
    return isinstance(value, str) and value.strip() == value != "" and "None" not in value


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_is_complete(section):
    assert is_text(section.title)
    assert section.cases
    assert section.claims or section.errata
    assert all(is_text(mutant.says) and mutant.flips for mutant in section.mutants)
    assert all(is_text(premise.says) for premise in section.premises)
    for erratum in section.errata:
        assert all(map(is_text, (erratum.id, erratum.where, erratum.says)))


@pytest.mark.parametrize("section", SECTIONS)
def test_a_claim_is_complete(section):
    for claim, _ in claims_of(section):
        assert is_text(claim.id)
        assert is_text(claim.says)
        assert isinstance(claim.relation, Relation)
        assert claim.expect in (Verdict.HOLDS, Verdict.FAILS)
        assert claim.scope is None or isinstance(claim.scope, Scope)
        assert claim.domain is None or isinstance(claim.domain, Domain)
        assert callable(claim.applies)


#: The paper's letters, and the parameters that they stand for in the sections' instances.
LETTERS = {"n": "n", "N": "n", "N_max": "n_max", "d": "d", "k": "k", "p": "p", "M": "modulus", "H": "heads",
           "P": "pseudo_heads", "d_k": "key", "d_v": "value", "largest": "largest", "W": "w"}


@pytest.mark.parametrize("section", SECTIONS)
def test_a_case_is_complete_and_its_name_agrees_with_its_sizes(section):
    for case in section.cases:
        assert is_text(case.name)
        assert isinstance(case.domain, Domain)
        assert isinstance(case.scope, Scope)
        named = re.findall(r"\b([A-Za-z_]+)=(\d+)\b", case.name)
        for letter, size in named:
            given = case.parameters.get(LETTERS.get(letter, ""))
            assert given is None or given == int(size), (case.name, letter)


#: What a case's name says of its inputs, and the scopes that it may claim.
EARNED = [
    (r"symbolic|\bany\b|\bevery\b|built", {Scope.GRAPH, Scope.SIZE, Scope.ALL}),
    (r"random integers|given tokens|beyond|float64|softmax|base \d|numbers,|tokens 1, 2, 3", {Scope.INPUT}),
    (r"random A", {Scope.GRAPH, Scope.SIZE}),
]


@pytest.mark.parametrize("section", SECTIONS)
def test_a_scope_is_earned(section):
    for case in section.cases:
        if case.domain in (FLOATS, BALLS):
            assert case.scope is Scope.INPUT, case.name
        if case.scope is Scope.ALL:
            assert case.domain is POLYNOMIALS, case.name
        for words, scopes in EARNED:
            assert not re.search(words, case.name) or case.scope in scopes, case.name
        if re.search(r"symbolic|any score function|every temperature", case.name):
            assert case.domain is POLYNOMIALS, case.name
        if "random A" in case.name:
            assert (case.domain is RESIDUES) == (case.scope is Scope.SIZE), case.name


@pytest.mark.parametrize("section", SECTIONS)
def test_every_coefficient_is_every_residue_of_one_and_a_symbol(section):
    """CPM-3 for every G: the layer with G a symbol, its counts at G in each class modulo M; else at the G of the name."""
    for case in (case for case in section.cases if "coefficients" in case.parameters):
        modulus, given = case.parameters["modulus"], case.parameters["coefficients"]
        says = re.search(r"every G|G=([\d, ]+?)(?=, [a-z]|$)", case.name)
        assert says, case.name
        if says[0] == "every G":
            assert case.domain is POLYNOMIALS, case.name
            assert {g % modulus for g in given} == set(range(modulus)), case.name
        else:
            assert given == tuple(map(int, says[1].split(", "))), case.name
        assert bool(case.parameters.get("multi_head")) == ("multi-head attention" in case.name), case.name
        assert ("every residue" in case.name) == (case.scope is Scope.SIZE and not case.parameters.get("largest"))


def test_some_cases_have_coefficients():
    names = [case.name for theorem in CATALOGUE for section in theorem.sections for case in section.cases
             if "coefficients" in case.parameters]
    assert len([name for name in names if "every G" in name]) > 5
    assert len([name for name in names if "every G" not in name]) > 5


@pytest.mark.parametrize("theorem", CATALOGUE, ids=lambda theorem: theorem.key)
def test_a_theorem_is_complete(theorem):
    assert all(map(is_text, (theorem.number, theorem.title, theorem.source, theorem.statement)))
    claims = {claim.id for section in theorem.sections for claim, _ in claims_of(section)}
    assert set(theorem.headline) <= claims
    assert all(is_text(proof.says) and is_text(proof.name) and proof.file.endswith(".v") for proof in theorem.proofs)
    assert len({section.title for section in theorem.sections}) == len(theorem.sections)
