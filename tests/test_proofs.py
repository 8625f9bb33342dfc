"""Which machine-checked proofs count, and that those which the book names do."""

import json
import re
import sys

import pytest

from constructions import CATALOGUE, proved
from constructions.proved import FOLDER
from iha_theory.claims import Means, Proof, Scope, Theorem
from iha_theory.proofs import accepted, digest, is_accepted, text_digest
from iha_theory.verification import verify

sys.path.insert(0, str(FOLDER))
import check  # pyright: ignore[reportMissingImports]

# The accepted list.


FILES = {"Base.v": "(* nothing *)\n", "Middle.v": "From IHA Require Import Base.\n",
         "Top.v": "From mathcomp Require Import all_ssreflect.\nFrom IHA Require Import Base Middle.\n",
         "Other.v": "Theorem other : True. Proof. exact I. Qed.\n"}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    relist(tmp_path)
    return tmp_path


def relist(folder):
    listed = {name: {"digest": digest(folder, name), "theorems": [f"of_{name[:-2]}"]} for name in FILES}
    (folder / "accepted.json").write_text(json.dumps({"files": listed, "instances": text_digest("")}))


def proof(folder, file):
    return Proof(f"of_{file[:-2]}", file, "says", folder)


def counting(folder):
    accepted.cache_clear()
    return {name for name in FILES if is_accepted(proof(folder, name))}


def test_files_count_as_long_as_they_are_as_accepted(folder):
    assert counting(folder) == set(FILES)
    assert not is_accepted(Proof("another", "Top.v", "says", folder))
    assert not is_accepted(Proof("of_Top", "Nowhere.v", "says", folder))


@pytest.mark.parametrize(("edited", "left"), [
    ("Top.v", {"Base.v", "Middle.v", "Other.v"}), ("Middle.v", {"Base.v", "Other.v"}), ("Base.v", {"Other.v"}),
    ("Other.v", {"Base.v", "Middle.v", "Top.v"}),
])
def test_an_edited_file_loses_its_mark_and_so_does_all_that_stands_on_it(folder, edited, left):
    (folder / edited).write_text(FILES[edited] + "\n")
    assert counting(folder) == left


@pytest.mark.parametrize(("gone", "left"), [("Middle.v", {"Base.v", "Other.v"}), ("Base.v", {"Other.v"})])
def test_a_missing_file_takes_the_mark_of_all_that_stands_on_it(folder, gone, left):
    (folder / gone).unlink()
    assert counting(folder) == left


def test_two_files_that_exchange_their_contents_lose_their_marks(folder):
    (folder / "Base.v").write_text(FILES["Other.v"])
    (folder / "Other.v").write_text(FILES["Base.v"])
    assert counting(folder) == set()


def test_without_a_list_nothing_counts(folder):
    (folder / "accepted.json").unlink()
    assert counting(folder) == set()


def test_a_tampered_digest_does_not_count(folder):
    text = (folder / "accepted.json").read_text()
    right = digest(folder, "Other.v")
    (folder / "accepted.json").write_text(text.replace(right, right[::-1]))
    assert counting(folder) == set(FILES) - {"Other.v"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": 3, "instances": ""}'])
def test_a_list_of_another_shape_is_refused(folder, text):
    (folder / "accepted.json").write_text(text)
    with pytest.raises(ValueError, match=r"not a list of accepted proofs .* make proofs"):
        counting(folder)


def test_a_theorem_shows_a_row_for_every_size_only_while_its_proof_counts(folder):
    theorem = Theorem("7", "Truth", "§0", "True.", proofs=(proof(folder, "Other.v"), proof(folder, "Top.v")))
    accepted.cache_clear()
    rows = list(verify([theorem]))
    assert [(row.claim, row.scope, row.means) for row in rows] == [
        ("proof:of_Other", Scope.ALL, Means.PROOF), ("proof:of_Top", Scope.ALL, Means.PROOF)]
    assert [(row.says, row.relation, row.case, row.remark) for row in rows] == [
        (given.says, "⊢", f"proofs/{given.file}", "accepted without axioms") for given in theorem.proofs]
    (folder / "Base.v").write_text("(* edited *)\n")
    accepted.cache_clear()
    assert [row.claim for row in verify([theorem])] == ["proof:of_Other"]


# The book's proofs.


PROOFS = [pytest.param(found, id=f"{theorem.key}: {found.name}") for theorem in CATALOGUE for found in theorem.proofs]


@pytest.mark.parametrize("found", PROOFS)
def test_every_proof_that_the_book_names_stands_in_its_file_and_is_accepted(found):
    assert found.folder == FOLDER
    assert found.name in check.scan(found.file, (FOLDER / found.file).read_text())
    assert is_accepted(found), "not accepted as it is now: run make proofs"


def test_a_theorem_names_each_proof_once():
    names = [(theorem.key, found.name) for theorem in CATALOGUE for found in theorem.proofs]
    assert names
    assert len(names) == len(set(names))


def test_a_record_without_a_sentence_is_refused():
    with pytest.raises(ValueError, match=r"Layer\.v: wanted names"):
        proved._proofs("Layer.v", "\nmha_is_iha\ninterleaved_is_stacked\n    says so\n")


def table():
    """The rows of the table of names in proofs/README.md: (theorem, file)."""
    page = (FOLDER / "README.md").read_text()
    rows = re.findall(r"^\|(?:[^|]*\|){2}([^|]*`[^|]*)\| `(\w+\.v)` \|$", page, re.MULTILINE)
    return [(name, file) for names, file in rows for name in re.findall(r"`(\w+)`", names)]


def test_the_page_of_names_is_right_and_names_what_the_book_does():
    named = table()
    for name, file in named:
        assert name in check.scan(file, (FOLDER / file).read_text())
    assert {file for _, file in named} >= {"Layer.v", "Theorem2.v", "Theorem3.v", "Theorem4.v", "LowerBounds.v"}
    missing = {(found.name, found.file) for theorem in CATALOGUE for found in theorem.proofs} - set(named)
    assert missing == set()


def test_the_list_and_the_project_file_name_every_proof_file():
    listed = json.loads((FOLDER / "accepted.json").read_text())["files"]
    assert set(listed) == {path.name for path in FOLDER.glob("*.v")} == set(check.files(FOLDER))
    assert set(accepted(FOLDER)) == set(listed), "edited since: run make proofs"


def test_every_theorem_of_an_accepted_file_is_listed():
    for file, names in accepted(FOLDER).items():
        assert list(names) == sorted(check.scan(file, (FOLDER / file).read_text())), file
