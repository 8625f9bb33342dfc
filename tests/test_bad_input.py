"""Bad input is one clear line and exit code 2, and nothing is written."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import iha_theory.commands as commands
from tests.command_line import CASES, ROOT, refused


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


@pytest.mark.parametrize("text", ["1e200,1\n1,1e200\n", "1e-160,3e-161\n7e-161,1e-160\n"])
def test_floats_that_would_leave_the_doubles_are_refused(run, tmp_path, text):
    graph = tmp_path / "g.csv"
    graph.write_text(text)
    refused(run("verify", "3", "--graph", graph, "--k", "4", "--means", "float"), "beyond 2^250 or below 2^-250")


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
