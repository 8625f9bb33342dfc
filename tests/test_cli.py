"""The process behind every command: help, progress, a full disk, a closed pipe, Ctrl-C."""

import signal
import subprocess
import sys
import time
import tomllib

import numpy as np
import pytest

import iha_theory.commands as commands
from constructions.__main__ import main as console_script
from tests.command_line import ROOT, refused


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


def test_the_console_script_ends_with_the_exit_code_and_reads_the_book(monkeypatch, capsys):
    for arguments, code, says in ((["claims", "1"], 0, "Theorem 1"), (["claims", "9"], 2, "no theorem '9'")):
        monkeypatch.setattr(sys, "argv", ["iha-theory", *arguments])
        with pytest.raises(SystemExit) as ended:
            console_script()
        assert ended.value.code == code
        assert says in "".join(capsys.readouterr())


def test_the_version_is_that_of_the_project(run):
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert run("--version") == (0, f"iha-theory {wanted}\n", "")


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
