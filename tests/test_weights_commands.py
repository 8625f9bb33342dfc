"""The commands build and run: weights to a file, and the file on an input."""

import numpy as np

from tests.command_line import CASES, refused


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


def test_numbers_beyond_float64_are_refused(run, tmp_path):
    graph, weights, x = tmp_path / "g.csv", tmp_path / "w.safetensors", tmp_path / "x.csv"
    graph.write_text("1e400\n")
    refused(run("build", "polynomial-filter", "--graph", graph, "--k", "2", "--out", weights), "too large for float64")
    assert run("build", "cyclic-shifts", "--n", "2", "--out", weights)[0] == 0
    x.write_text("1e400\n1\n")
    refused(run("run", weights, "--input", x), "too large for float64")
    x.write_text("1e308\n1e308\n")
    refused(run("run", weights, "--input", x), "the output leaves the doubles")
