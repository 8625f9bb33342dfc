"""The command verify as its users meet it: graphs, sizes, means, JSON, and the exit code of a disappointment."""

import json
import re

import pytest

import iha_theory.commands as commands
from iha_theory.claims import Evidence, Means, Scope, Verdict
from tests.command_line import CASES, refused


def test_verify_on_a_graph_of_the_users_choice(run):
    code, out, err = run("verify", "3", "--graph", "florentine", "--k", "5")
    assert code == 0
    assert out.startswith("florentine: 15 nodes")
    assert re.search(r"florentine, n=15, d=2, k=5 +every X on this graph +exact +holds", out)
    assert "4 verdicts: 4 as expected, 0 not" in out
    assert err == ""


def test_verify_reads_files_features_and_orientation(run, tmp_path):
    features = tmp_path / "x.csv"
    features.write_text("1,0\n0,1\n2,3\n")
    graph = CASES / "graphs" / "directed_triangle.edgelist"
    code, out, _ = run("verify", "3", "--graph", graph, "--k", "4", "--features", features)
    assert code == 0
    assert "given X, d=2, k=4" in out
    assert "this input" in out
    code, out, _ = run("verify", "3", "--graph", graph, "--k", "4", "--orientation", "target-reads-source")
    assert code == 0
    assert "target-reads-source" in out


@pytest.mark.parametrize(("means", "shown"), [("exact", "exact"), ("residue", "residues"), ("float", "float64")])
def test_verify_by_the_means_asked_for(run, means, shown):
    code, out, _ = run("verify", "3", "--graph", "davis", "--k", "4", "--means", means)
    assert code == 0
    assert re.search(rf"bank .*{shown}", out)


def test_verify_with_sizes_alone_takes_symbols_or_residues(run):
    code, out, _ = run("verify", "3", "--n", "2", "--k", "3")
    assert code == 0
    assert "symbolic A, n=2, d=2, k=3" in out
    code, out, _ = run("verify", "3", "--n", "20", "--k", "6", "--pseudo-heads", "2")
    assert code == 0
    assert "random A, n=20, d=2, k=6" in out
    assert "error probability at most" in out


def test_symmetric_normalisation_is_served_by_floats_only(run):
    assert run("verify", "3", "--graph", "karate", "--k", "4", "--normalize", "sym")[0] == 0
    refused(run("verify", "3", "--graph", "karate", "--k", "4", "--normalize", "sym", "--means", "exact"),
            "square roots")


def test_json_is_the_evidence(run, tmp_path):
    path = tmp_path / "evidence.json"
    code, out, _ = run("verify", "1", "--json", path)
    assert code == 0
    rows = json.loads(path.read_text())
    assert f"{len(rows)} verdicts" in out
    assert all(row["is_expected"] for row in rows)
    assert {row["verdict"] for row in rows} == {"HOLDS", "FAILS"}
    assert all(row["witness"] for row in rows if row["verdict"] == "FAILS")
    assert list(tmp_path.iterdir()) == [path]


def test_several_processes_give_the_same_table(run):
    assert run("verify", "1", "--jobs", "2")[1] == run("verify", "1")[1]


def test_a_claim_that_disappoints_is_exit_code_1(run, monkeypatch, tmp_path):
    row = Evidence("1", "bank", "says", "=", "n=1", Scope.SIZE, Means.EXACT, Verdict.FAILS, Verdict.HOLDS)
    monkeypatch.setattr(commands, "judge_job", lambda *_: [row])
    monkeypatch.setattr(commands, "judge_case", lambda *_: [row])
    code, out, _ = run("verify", "1")
    assert code == 1
    assert "UNEXPECTED: holds was expected" in out
    assert ", 0 as expected" not in out
    assert run("errata", "1")[0] == 1


def test_options_choose_the_theorems_that_take_them(run):
    code, out, _ = run("verify", "--graph", "florentine", "--k", "3")
    assert code == 0
    assert "Theorem 1" in out
    assert "Theorem 3 (6)" in out
    assert "Theorem 4" not in out
    code, out, _ = run("verify", "--modulus", "3", "--n", "2")
    assert code == 0
    assert "Theorem 3" not in out
    assert "Theorem 4 (7)" in out


def test_as_many_pseudo_heads_as_heads_are_the_papers_routing(run):
    code, out, _ = run("verify", "3", "--graph", "florentine", "--k", "9", "--pseudo-heads", "3")
    assert code == 0
    assert re.search(r"bank .*holds", out)
    assert "bank-tiled" not in out


def test_a_rational_graph_whose_denominator_a_prime_divides(run, tmp_path):
    from iha_theory.residues import random_primes

    graph = tmp_path / "g.csv"
    graph.write_text(f"0,1/{random_primes(3, seed=4)[0]}\n1,0\n")
    code, out, _ = run("verify", "3", "--graph", graph, "--k", "4", "--means", "residue")
    assert code == 0
    assert "residues" in out
