"""``iha-theory audit``: a layer of a user's file, in a process of its own."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from iha_theory.conformance.supervised import imported

LAYERS = '''
import os, signal, time
import torch
from torch import nn
from iha_theory.conformance import Adapter
from iha_theory.torch_layer import InterleavedHeadAttention

def good():
    print("this line is not part of the report")
    return InterleavedHeadAttention(8, 2, 2, mask="token")

class Half(nn.Module):
    d_model = 8
    def forward(self, x):
        return x * (torch.arange(x.shape[1], dtype=x.dtype) > 2)[:, None] + x.mean(1, keepdim=True)

class Deaf(nn.Module):
    d_model = 8
    def forward(self, x):
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        open(__file__ + ".running", "w").close()
        time.sleep(120)

class Dying(nn.Module):
    d_model = 8
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGKILL)

def raising():
    raise KeyError("no such layer")

black = Adapter(white_box=False, mask="none")
number = 3
'''


@pytest.fixture
def layers(tmp_path):
    path = tmp_path / "layers_of_a_user.py"
    path.write_text(LAYERS)
    return path


def test_a_layer_that_conforms_is_exit_code_0(run, layers, tmp_path):
    page, record = tmp_path / "audit.html", tmp_path / "audit.json"
    code, out, err = run("audit", f"{layers}:good", "--html", page, "--json", record)
    assert code == 0, err
    assert "InterleavedHeadAttention: 17 conform, 0 differ; 1 not applicable" in out
    assert "not part of the report" not in out
    assert page.read_text().startswith("<!doctype html>")
    assert json.loads(record.read_text())["conforms"] is True


def test_a_layer_that_differs_is_exit_code_1_and_options_speak_for_it(run, layers):
    code, out, _ = run("audit", f"{layers}:Half", "--adapter", f"{layers}:black", "--format", "markdown", "--claims", "mha")
    assert code == 1
    assert "| permutation | **differs** |" in out
    assert "| repeated tokens | conforms |" in out
    assert "| algorithm 1 | not applicable | the weights are not named |" in out


@pytest.mark.parametrize(("name", "found"), [("Deaf", "did not come back within 0.3 s"), ("Dying", "signal 9")])
def test_a_layer_that_takes_its_process_with_it_is_a_finding(run, layers, monkeypatch, name, found):
    monkeypatch.setattr("iha_theory.conformance.supervised.GRACE", 2.0)
    code, out, _ = run("audit", f"{layers}:{name}", "--time-limit", 0.3)
    assert code == 1
    assert found in out
    assert f"{name}: 0 conform, 1 differ: runs; 17 not applicable" in out


@pytest.mark.parametrize(("arguments", "message"), [
    (("{file}:missing",), "has no 'missing'; it has Adapter, Deaf, Dying, Half"),
    (("{file}:raising",), "making the layer raised KeyError: 'no such layer'"),
    (("{file}:good", "--adapter", "{file}:number"), "a int, wanted an iha_theory.conformance.Adapter"),
    (("nothing.at.all:layer",), "importing nothing.at.all raised ModuleNotFoundError"),
])
def test_what_cannot_be_made_is_refused_and_nothing_is_written(run, layers, tmp_path, arguments, message):
    page = tmp_path / "audit.html"
    code, out, err = run("audit", *(a.replace("{file}", str(layers)) for a in arguments), "--html", page)
    assert (code, out) == (2, "")
    assert message in err
    assert len([line for line in err.splitlines() if not line.startswith("...")]) == 1
    assert not page.exists()


@pytest.mark.parametrize(("arguments", "message"), [
    (("no_colon",), "'no_colon': wanted package.module:name or file.py:name"),
    (("layers.py:x", "--time-limit", "0"), "--time-limit: got 0, wanted a positive number"),
    (("layers.py:x", "--window", "0"), "--window: got 0, wanted at least 1"),
    (("layers.py:x", "--html", "/nowhere/at/all.html"), "/nowhere/at/all.html"),
    (("layers.py:x", "--seed", "-1"), "--seed: got -1, wanted a number from 0"),
    (("layers.py:x", "--time-limit", "nan"), "--time-limit: got nan"),
    (("layers.py:x", "--html", "a.out", "--json", "./a.out"), "named for both --html and --json"),
    (("layers.py:x",), "layers.py: no such file"),
])
def test_bad_options_are_refused(run, arguments, message):
    code, out, err = run("audit", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_a_page_in_place_of_the_layers_file_is_refused(run, layers):
    code, _, err = run("audit", f"{layers}:good", "--html", layers)
    assert code == 2
    assert "is an input of this command" in err
    assert layers.read_text() == LAYERS


def test_files_are_told_apart_by_their_place_and_not_by_their_name(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    for number, folder in enumerate(("one", "two")):
        (tmp_path / folder).mkdir()
        # A name that the standard library has too.
        (tmp_path / folder / "random.py").write_text(f"which = {number}\n")
    found = [imported(f"{tmp_path}/{folder}/random.py:which") for folder in ("one", "two", "one")]
    assert found == [0, 1, 0]


def test_the_process_ends_with_the_one_that_started_it(layers):
    code = f"from iha_theory.conformance.supervised import audited; audited({str(layers) + ':Deaf'!r}, time_limit=60)"
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        waited = time.monotonic()
        # Until it is in the layer: before, it would end by itself when it finds nobody to send to.
        while not Path(f"{layers}.running").exists() and time.monotonic() - waited < 60:
            time.sleep(0.05)
        started = [int(child) for child in children.read_text().split()]
        process.kill()
    waited = time.monotonic()
    while any(is_running(child) for child in started) and time.monotonic() - waited < 60:
        time.sleep(0.05)
    # The resource tracker and the audit.
    assert len(started) >= 2
    assert not any(is_running(child) for child in started)


def is_running(process):
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().split()[2] != "Z"
