"""What the tests of the figures share: a figure's module, its data and its committed picture."""

from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "figures"


def module(name):
    return import_module(f"figures.{name}")


@cache
def data_of(name):
    """The data of a figure, computed once for all tests."""
    return module(name).data()


def committed(name):
    return (FOLDER / f"{name}.svg").read_bytes()
