"""Who loads matplotlib, and when."""

import ast
import subprocess
import sys

import figures
from figures import NAMES
from tests.drawn_figures import ROOT


def loads(path):
    """The modules that a file imports anywhere."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_only_the_figures_import_matplotlib():
    drawing = {path.parent.name for folder in ("iha_theory", "constructions", "figures", "benchmarks", "docs", "proofs")
               for path in (ROOT / folder).rglob("*.py") if any(name.startswith("matplotlib") for name in loads(path))}
    assert drawing == {"figures"}


def test_help_and_names_load_no_matplotlib():
    code = "import sys, figures, figures.__main__\nprint('matplotlib' in sys.modules, 'numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.split() == ["False", "False"]


def test_drawing_starts_no_window_system():
    code = f"import figures, sys\nfigures.rendered({NAMES[2]!r})\nprint('matplotlib.pyplot' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "False"
    assert figures.FORMATS == ("svg", "png", "pdf")
