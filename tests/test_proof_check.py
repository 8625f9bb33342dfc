"""What stops the check of the proofs: first from their text alone, then, where Coq is there, by running it."""

import shutil
import sys

import pytest

from constructions.proved import FOLDER
from iha_theory.proofs import accepted, printed_instances

sys.path.insert(0, str(FOLDER))
import check  # pyright: ignore[reportMissingImports]

needs_coq = pytest.mark.skipif(not check.is_installed(), reason="Coq is not here: the proofs were not re-checked")


@pytest.mark.parametrize(("text", "reason"), [
    ("Theorem t : True. Proof. Admitted.", "says Admitted"),
    ("Theorem t : True. Proof. Abort.", "says Abort"),
    ("Theorem t : True.\nProof. by admit. Qed.", "says admit"),
    ("Theorem t : True. Proof. give_up. Qed.", "says give_up"),
    ("Axiom a : False.", "says Axiom"),
    ("Axioms a b : False.", "says Axioms"),
    ("Parameter a : nat.", "says Parameter"),
    ("Conjecture a : False.", "says Conjecture"),
    ("(* in a comment *) Local Axiom a : False.", "says Axiom"),
    ("Declare Module M : T.", "says Declare Module"),
    ("Unset Guard Checking.", "says Unset Guard Checking"),
    ("#[bypass_check(guard)] Fixpoint f (n : nat) : nat := f n.", "says bypass_check"),
    ("Variable a : nat.", "Variable outside a section"),
    ("Hypothesis a : False.", "Hypothesis outside a section"),
    ("Hypotheses a b : False.", "Hypotheses outside a section"),
    ("Context (a : False).", "Context outside a section"),
    ("Section S. Variable a : nat. End S. Local Variable b : nat.", "Variable outside a section"),
    ("Module M. Variables a b : nat. End M.", "Variables outside a section"),
    ("Section S. Module M := N. End S. Context (a : nat).", "Context outside a section"),
    ("Require Import IHA.Layer.", "write 'From IHA Require Import NAME'"),
    ("From IHA Require Layer.", "write 'From IHA Require Import NAME'"),
    ("From Somewhere Require Import Layer.", "write 'From IHA Require Import NAME'"),
])
def test_a_file_that_assumes_something_or_leaves_it_open_is_refused(text, reason):
    with pytest.raises(check.Refused, match=f"^X.v.*{reason}"):
        check.scan("X.v", text)


def test_comments_strings_and_sections_are_understood():
    text = """(* Axiom a. (* nested "*)" Admitted. *) Abort. *)
From mathcomp Require Import all_ssreflect. From IHA Require Import Layer Theorem3.
Definition s := "Admitted. (* not a comment ""Theorem no : True.". (* Theorem no : True. *)
Section S. Variable n : nat. Hypothesis h : n = 1. Theorem first : True. Proof. exact I. Qed. End S.
Module M. Section S. Context (n : nat). #[local] Theorem second' : True. Proof. by []. Qed. End S.
  Corollary third (n : nat) : n <= n + 1. Proof. by []. Qed. End M. Lemma fourth : True. Proof. by []. Qed.
Local Theorem fifth : True. Proof. by []. Qed."""
    assert check.scan("X.v", text) == ["first", "M.second'", "M.third", "fifth"]


# Where Coq is there: the whole check on small projects.

GOOD = {"Base.v": "Theorem base : True. Proof. exact I. Qed.\n",
        "Instances.v": "From Coq Require Import String List.\nFrom IHA Require Import Base.\nImport ListNotations.\n"
                       'Open Scope string_scope.\nEval compute in ["one x [1]"; "two x [2]"].\n'}


def project(folder, files):
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "_CoqProject").write_text("-Q . IHA\n" + "".join(f"{name}\n" for name in files))
    return folder


def run(folder, *options):
    check.main([str(folder), *options])


@needs_coq
def test_what_the_checker_accepts_is_listed_and_compared(tmp_path, capsys):
    run(project(tmp_path, GOOD))
    printed = capsys.readouterr().out
    assert "base\n     : True\n    base: Closed under the global context\n" in printed
    assert printed.endswith("1 theorems accepted, no axioms\n")
    assert (tmp_path / "instances.txt").read_text() == printed_instances(tmp_path) == "one x [1]\ntwo x [2]\n"
    assert accepted(tmp_path) == {"Base.v": ("base",), "Instances.v": ()}
    assert {path.name for path in tmp_path.iterdir()} == {*GOOD, "_CoqProject", "accepted.json", "instances.txt"}
    (tmp_path / "Base.v").write_text(GOOD["Base.v"].replace("base", "bass"))
    before = (tmp_path / "accepted.json").read_text()
    with pytest.raises(SystemExit, match=r"proofs: accepted\.json is not what the checker finds now; run make proofs"):
        run(tmp_path, "--check")
    assert (tmp_path / "accepted.json").read_text() == before


@pytest.mark.parametrize("name", ["accepted.json", "instances.txt"])
def test_a_committed_list_that_differs_or_is_missing_fails_the_check_and_stays(tmp_path, monkeypatch, name):
    lists = {"accepted.json": "found\n", "instances.txt": "printed\n"}
    monkeypatch.setattr(check, "install", lambda: None)
    monkeypatch.setattr(check, "judge", lambda folder: lists)
    run(project(tmp_path, GOOD))
    run(tmp_path, "--check")
    (tmp_path / name).write_text("edited")
    with pytest.raises(SystemExit, match=f"^proofs: {name} is not what the checker finds now; run make proofs"):
        run(tmp_path, "--check")
    assert (tmp_path / name).read_text() == "edited"
    (tmp_path / name).unlink()
    with pytest.raises(SystemExit, match=f"^proofs: {name} is not what"):
        run(tmp_path, "--check")
    run(tmp_path)
    assert (tmp_path / name).read_text() == lists[name]


@needs_coq
@pytest.mark.parametrize(("files", "reason"), [
    ({"Base.v": "Theorem base : True. Proof. Admitted.\n"}, "Base.v says Admitted"),
    ({"Base.v": "Theorem base : False. Proof. exact I. Qed.\n"}, 'Base.v does not compile\n.*The term "I" has type'),
    ({"Base.v": "Theorem base : True. Proof.\n"}, "Base.v does not compile\n.*There are pending proofs"),
    ({"Base.v": "From Coq Require Import Classical.\nTheorem base (P : Prop) : P \\/ ~ P.\n"
                "Proof. exact (classic P). Qed.\n"}, "these rest on axioms: Base.v: base"),
    ({"Base.v": "From IHA Require Import Gone.\n"}, "Base.v requires Gone.v, which is not there"),
    ({"Base.v": "From IHA Require Import Instances.\n"}, "these files require each other: .*Base.v"),
])
def test_a_project_with_a_planted_fault_is_refused_and_the_lists_stay(tmp_path, files, reason):
    project(tmp_path, GOOD | files)
    (tmp_path / "accepted.json").write_text("as it was")
    with pytest.raises(SystemExit, match=f"(?s)^proofs: ({reason})"):
        run(tmp_path)
    assert (tmp_path / "accepted.json").read_text() == "as it was"
    assert not (tmp_path / "instances.txt").exists()


@needs_coq
@pytest.mark.parametrize("text", [
    "Axiom hidden : False.\nTheorem base : True. Proof. exact I. Qed.\n",
    "Lemma hidden : False. Admitted.\nTheorem base : True. Proof. exact I. Qed.\n",
])
def test_the_second_checker_sees_an_axiom_that_no_theorem_uses(tmp_path, text):
    project(tmp_path, {"Base.v": text})
    check.compile_all(tmp_path, ["Base.v"])
    with pytest.raises(check.Refused, match=r"coqchk finds these assumed: IHA\.Base\.hidden"):
        check.recheck(tmp_path, ["Base.v"])


@needs_coq
def test_a_variable_outside_a_section_does_not_compile(tmp_path):
    project(tmp_path, {"Base.v": "Variable hidden : False.\n"})
    with pytest.raises(check.Refused, match=r"Base\.v does not compile"):
        check.compile_all(tmp_path, ["Base.v"])


def test_a_file_that_the_project_does_not_list_is_refused(tmp_path):
    project(tmp_path, GOOD)
    (tmp_path / "More.v").write_text("")
    with pytest.raises(check.Refused, match=r"disagree about More\.v"):
        check.files(tmp_path)


def test_as_root_the_packages_are_installed(tmp_path, monkeypatch, capsys):
    (tmp_path / "apt-get").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/log\n')
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(check, "is_installed", lambda: False)
    monkeypatch.setattr(check.os, "geteuid", lambda: 0)
    with pytest.raises(check.Refused, match="Coq with MathComp is not here"):
        check.install()
    assert (tmp_path / "log").read_text().splitlines() == [
        "update -qq", "install -y -qq --no-install-recommends coq libcoq-mathcomp-algebra"]
    (tmp_path / "log").unlink()
    monkeypatch.setattr(check.os, "geteuid", lambda: 1000)
    with pytest.raises(check.Refused, match="Coq with MathComp is not here"):
        check.install()
    assert not (tmp_path / "log").exists()


def test_without_coq_the_two_packages_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match=r"proofs: Coq with MathComp is not here; .* coq and libcoq-mathcomp-algebra"):
        run(project(tmp_path, GOOD))
