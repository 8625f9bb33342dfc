"""Shared settings and fixtures: hypothesis repeats itself, so that a failure seen once is seen again; no model is looked for
on the network; the command line.
"""

import os

import pytest
from hypothesis import settings

from constructions.__main__ import load
from iha_theory.cli import main

os.environ["HF_HUB_OFFLINE"] = "1"
settings.register_profile("steady", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("steady")


@pytest.fixture
def run(capsys):
    """The command line as a function of its arguments: exit code, stdout, stderr."""
    def call(*arguments):
        try:
            code = main(load, [str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
