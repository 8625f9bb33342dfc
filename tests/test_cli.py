"""The command line as its users meet it: what it prints, its exit codes, and one clear line for bad input."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import iha_theory.commands as commands
from constructions.__main__ import load
from iha_theory.claims import Evidence, Means, Scope, Verdict
from iha_theory.cli import main

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "cases"


@pytest.fixture
def run(capsys):
    def call(*arguments):
        try:
            code = main(load, [str(a) for a in arguments])
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def refused(result, *says):
    code, out, err = result
    assert code == 2, out
    lines = [line for line in err.splitlines() if not line.startswith("...")]
    assert len(lines) == 1, err
    for text in says:
        assert text in lines[0]


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


def test_errata_show_what_is_printed_and_what_holds(run):
    code, out, _ = run("errata", "3")
    assert code == 0
    assert "1. thm3-k4 (misprint)" in out
    assert "fails, as expected" in out
    assert "witness [0, 2]:" in out
    assert out.rstrip().endswith("1 errata")


def test_claims_are_listed_without_computing(run):
    code, out, _ = run("claims")
    assert code == 0
    assert "3/bank  [=]" in out
    assert "stated, not checked" in out


def test_show_a_worked_example_and_a_claim(run):
    code, out, _ = run("show", "k4")
    assert code == 0
    for stage in ("input", "w_q", "alpha_q", "pseudo-queries", "scores", "attention", "output"):
        assert f"--- {stage}" in out
    assert run("show", "k4", "--format", "markdown")[1].startswith("# k = 4")
    code, out, _ = run("show", "3/bank")
    assert code == 0
    assert "left side of '='" in out
    assert "a0_0*a0_1*x1_0" in out or "a0_0" in out


def test_build_and_run_give_the_bank(run, tmp_path):
    weights, features, output = tmp_path / "w.safetensors", tmp_path / "x.csv", tmp_path / "y.npy"
    code, out, _ = run("build", "polynomial-filter", "--graph", CASES / "graphs" / "pattern.mtx", "--k", "3",
                       "--out", weights)
    assert code == 0
    assert "linear attention" in out
    features.write_text("1\n10\n100\n1000\n")
    code, out, _ = run("run", weights, "--input", features)
    assert code == 0
    path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    x = np.array([[1.0], [10.0], [100.0], [1000.0]])
    expected = np.concatenate([x, path @ x, path @ path @ x], axis=1)
    assert [[float(v) for v in line.split(",")] for line in out.splitlines()] == expected.tolist()
    assert run("run", weights, "--input", features, "--out", output)[0] == 0
    assert (np.load(output) == expected).all()
    assert run("run", weights, "--input", features, "--out", tmp_path / "y.csv")[0] == 0
    assert run("build", "polynomial-filter-mha", "--graph", "karate", "--k", "2", "--out", weights)[0] == 0


@pytest.mark.parametrize("path", sorted((CASES / "refused").iterdir()), ids=lambda p: p.name)
def test_every_refused_file_is_one_line_and_exit_code_2(run, path, tmp_path):
    target = tmp_path / "evidence.json"
    refused(run("verify", "3", "--graph", path, "--k", "2", "--json", target), path.name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("arguments", "says"), [
    (["verify", "3", "--k", "0"], "--k: got 0, wanted at least 1"),
    (["verify", "3", "--graph", "karate", "--k", "-2"], "--k: got -2, wanted at least 1"),
    (["verify", "3", "--k", "x"], "argument --k: invalid int value: 'x'"),
    (["verify", "3", "--graph", "karat"], "karate"),
    (["verify", "3", "--graph", "nowhere.csv"], "nowhere.csv"),
    (["verify", "33"], "no theorem '33'; there are 1, 2 (5), 3 (6)"),
    (["verify", "2", "--graph", "karate"], "Theorem 2 (5)"),
    (["verify", "3", "--features", "x.csv"], "--features belongs to a graph"),
    (["verify", "3", "--normalize", "row"], "--normalize belongs to a graph"),
    (["verify", "3", "--graph", "karate", "--modulus", "3"], "nothing that is asked for takes modulus; leave it out"),
    (["verify", "3", "--graph", "karate", "--k", "9", "--pseudo-heads", "4"], "3 heads do with at most P=3"),
    (["verify", "3", "--graph", "karate", "--k", "100000000"], "wanted at most 1000000 powers"),
    (["verify", "3", "--graph", "karate", "--n", "5"], "n: got 5, but karate has 34 nodes"),
    (["verify", "3", "--means", "exact", "--n", "50"], "exact means without a graph take a symbolic A"),
    (["verify", "3", "--graph", "karate", "--means", "ball"], "not by ball means"),
    (["verify", "3", "--means", "magic"], "invalid choice: 'magic'"),
    (["verify", "--jobs", "0"], "--jobs: got 0, wanted at least 1"),
    (["verify", "--json", "/nowhere/e.json"], "there is no folder /nowhere"),
    (["verify", "--json", "."], "is a folder"),
    (["veryfi"], "verify"),
    (["show", "k5"], "k4"),
    (["show", "3/bnk"], "3/bank"),
    (["build", "polynomial-filtre", "--out", "w"], "polynomial-filter"),
    (["build", "polynomial-filter", "--graph", "karate", "--out", "w"], "needs --k"),
    (["build", "polynomial-filter", "--graph", "karate", "--k", "2", "--n", "3", "--out", "w"], "takes no --n"),
    (["build", "polynomial-filter", "--graph", "karate", "--k", "60", "--out", "/tmp/never-written"], "is no float64"),
    (["build", "polynomial-filter", "--graph", "karate", "--k", "4", "--pseudo-heads", "0", "--out", "w"],
     "--pseudo-heads: got 0, wanted at least 1"),
    (["build", "cyclic-shifts", "--n", "0", "--out", "w"], "--n: got 0, wanted at least 1"),
    (["build", "polynomial-filter", "--graph", "karate", "--k", "1000000", "--out", "w"], "would have 4,037,380,000 entries"),
    (["build", "cyclic-shifts-mha", "--n", "5000", "--out", "w"], "entries, more than"),
    (["run", "nowhere.safetensors", "--input", "x.csv"], "nowhere.safetensors: cannot be read"),
    (["run", str(ROOT / "README.md"), "--input", "x.csv"], "not a safetensors file"),
])
def test_bad_input_is_one_line_that_names_it(run, arguments, says):
    refused(run(*arguments), says)
    assert not Path("/tmp/never-written").exists()


def test_a_graph_too_large_for_exact_means_is_refused_with_the_means_that_fit(run, tmp_path):
    path = tmp_path / "large.npy"
    np.save(path, np.random.default_rng(0).integers(0, 9, (700, 700)))
    refused(run("verify", "3", "--graph", path, "--k", "64"), "GiB", "residue means would fit")
    big = tmp_path / "larger.npy"
    np.save(big, np.zeros((1500, 1500), dtype=np.int8))
    refused(run("verify", "3", "--graph", big, "--k", "225", "--means", "residue"), "GiB", "no means fits")


def test_an_output_that_cannot_be_written_is_refused_before_the_work(run, monkeypatch, tmp_path):
    monkeypatch.setattr(commands, "judge_job", lambda *_: pytest.fail("worked before looking at the output"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    refused(run("verify", "1", "--json", tmp_path / "e.json"), "cannot be written")


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


@pytest.mark.parametrize("text", ["1e200,1\n1,1e200\n", "1e-160,3e-161\n7e-161,1e-160\n"])
def test_floats_that_would_leave_the_doubles_are_refused(run, tmp_path, text):
    graph = tmp_path / "g.csv"
    graph.write_text(text)
    refused(run("verify", "3", "--graph", graph, "--k", "4", "--means", "float"), "beyond 2^250 or below 2^-250")


def test_numbers_beyond_float64_are_refused(run, tmp_path):
    graph, weights, x = tmp_path / "g.csv", tmp_path / "w.safetensors", tmp_path / "x.csv"
    graph.write_text("1e400\n")
    refused(run("build", "polynomial-filter", "--graph", graph, "--k", "2", "--out", weights), "too large for float64")
    assert run("build", "cyclic-shifts", "--n", "2", "--out", weights)[0] == 0
    x.write_text("1e400\n1\n")
    refused(run("run", weights, "--input", x), "too large for float64")
    x.write_text("1e308\n1e308\n")
    refused(run("run", weights, "--input", x), "the output leaves the doubles")


def test_an_output_never_replaces_an_input_a_device_or_a_link(run, tmp_path):
    graph, link, real = tmp_path / "g.csv", tmp_path / "link.json", tmp_path / "real.json"
    graph.write_text("0,1\n1,0\n")
    refused(run("verify", "3", "--graph", graph, "--k", "2", "--json", graph), "is an input of this command")
    assert graph.read_text() == "0,1\n1,0\n"
    refused(run("verify", "1", "--json", "/dev/null"), "is no ordinary file")
    refused(run("verify", "1", "--json", tmp_path / ("a" * 250)), "the name is too long")
    real.write_text("")
    link.symlink_to(real)
    assert run("verify", "3", "--graph", graph, "--k", "2", "--json", link)[0] == 0
    assert link.is_symlink()
    assert json.loads(real.read_text())


def test_a_full_disk_is_one_line():
    process = subprocess.run(f"{sys.executable} -m constructions claims > /dev/full", shell=True, cwd=ROOT,  # noqa: S602
                             capture_output=True, text=True, check=False)
    assert process.returncode == 2
    assert process.stderr.count("\n") == 1
    assert "cannot be written" in process.stderr


def test_too_little_memory_is_one_line(run, monkeypatch):
    def exhausted(*_):
        raise MemoryError

    monkeypatch.setattr(commands, "claims", exhausted)
    refused(run("claims"), "not enough memory")


def test_help_and_no_command_are_answered(run):
    for arguments in (["--help"], ["verify", "--help"], []):
        code, out, _ = run(*arguments)
        assert code == 0
        assert "usage: iha-theory" in out


def test_progress_is_told_on_stderr_when_work_lasts(monkeypatch, capsys):
    monkeypatch.setattr(commands, "_QUIET_SECONDS", 0.02)
    with commands.Progress() as progress:
        progress.now("case 1 of 2: Theorem 3")
        time.sleep(0.2)
    assert "... case 1 of 2: Theorem 3 (0 s)" in capsys.readouterr().err


def test_ctrl_c_is_exit_code_130_and_leaves_nothing(tmp_path):
    matrix = tmp_path / "a.npy"
    np.save(matrix, np.random.default_rng(0).integers(-9, 9, (190, 190)))
    target = tmp_path / "e.json"
    command = [sys.executable, "-m", "constructions", "verify", "3", "--graph", str(matrix), "--k", "25", "--json",
               str(target)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        # The first line of progress shows that the work has begun.
        assert process.stderr.readline().startswith("...")
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "interrupted; nothing was written" in rest
    assert "Traceback" not in rest
    assert list(tmp_path.iterdir()) == [matrix]


def test_a_closed_pipe_is_no_traceback():
    process = subprocess.run(f"{sys.executable} -m constructions claims | head -1", shell=True, cwd=ROOT,  # noqa: S602
                             capture_output=True, text=True, check=True)
    assert process.stdout.count("\n") == 1
    assert process.stderr == ""
