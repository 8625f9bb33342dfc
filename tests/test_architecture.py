"""Who may import whom, what importing costs, and that nothing but an assert in a test asserts."""

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

#: Each module of the language may import those to its left. One name stands for a module and its parts.
ORDER = (
    ("residues", "scalars"),
    ("layer",),
    ("attention",),
    ("files", "matrices", "graphml", "edge_files", "graphs"),
    ("count", "positivity", "flops", "schedules", "rank", "claims", "device_cases"),
    ("comparison", "proofs", "tables"),
    ("verification", "flop_tables"),
    ("torch_masks", "torch_rotary", "torch_mixing", "torch_init"),
    ("torch_fused", "torch_flex", "torch_cache"),
    ("torch_kernels",),
    ("torch_arguments", "torch_convert"),
    ("torch_layer",),
    ("torch_device", "torch_models", "torch_inspect", "torch_hugging_face"),
    ("display", "report", "weights_file"),
    ("book",),
    ("conformance",),
    ("commands", "account_commands", "bound_command", "audit_command"),
    ("weights_commands",),
    ("cli",),
)
#: The same inside the conformance kit.
KIT_ORDER = (("weights", "limits"), ("adapter",), ("built_in", "findings", "formula", "judgement", "subject"),
             ("conduct", "padding", "sight", "white_box"), ("kit",), ("supervised",), ("__init__",))
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
THEOREM_MODULES = "theorem_"


def imports(path, *, lazily=False):
    """The modules that a file imports when it is imported (``lazily``: also inside functions and for types)."""
    tree = ast.parse(path.read_text())
    nodes = ast.walk(tree) if lazily else tree.body
    found = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def modules(package):
    return sorted((ROOT / package).glob("*.py"))


@pytest.mark.parametrize("path", modules("iha_theory"), ids=lambda p: p.stem)
def test_the_language_imports_to_the_left_only_and_never_the_book(path):
    if path.stem == "__init__":
        assert not [name for name in imports(path) if name.startswith(("iha_theory", "constructions"))]
        return
    for name in imports(path, lazily=True):
        assert not name.startswith(("constructions", "figures", "tests", "benchmarks"))
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "iha_theory" and len(parts) > 1 and parts[1] in RANK and parts[1] != path.stem:
            assert RANK[parts[1]] <= RANK[path.stem], f"{path.stem} imports {name}"
            assert RANK[parts[1]] < RANK[path.stem] or len(ORDER[RANK[path.stem]]) > 1


@pytest.mark.parametrize("path", modules("iha_theory/conformance"), ids=lambda p: p.stem)
def test_the_conformance_kit_imports_to_the_left_only(path):
    rank = {name: number for number, names in enumerate(KIT_ORDER) for name in names}
    for name in imports(path, lazily=True):
        parts = name.split(".")
        assert parts[0] not in ("constructions", "figures", "tests", "benchmarks")
        if parts[0] == "iha_theory" and len(parts) > 1:
            assert RANK[parts[1]] <= RANK["conformance"]
            if parts[1] == "conformance" and len(parts) > 2 and parts[2] in rank:
                assert rank[parts[2]] < rank[path.stem] or len(KIT_ORDER[rank[path.stem]]) > 1


def test_every_module_of_the_language_has_its_place():
    assert {path.stem for path in modules("iha_theory")} - {"__init__"} <= set(RANK)


@pytest.mark.parametrize("path", modules("constructions"), ids=lambda p: p.stem)
def test_the_book_imports_the_language_and_theorems_never_one_another(path):
    for name in imports(path, lazily=True):
        assert not name.startswith(("figures", "tests", "benchmarks", "torch", "matplotlib"))
        assert not name.startswith(("iha_theory.cli", "iha_theory.commands")) or path.stem == "__main__"
        if path.stem.startswith(THEOREM_MODULES):
            assert not name.startswith(f"constructions.{THEOREM_MODULES}")


PACKAGES = ("iha_theory", "iha_theory/conformance", "constructions", "figures")


@pytest.mark.parametrize("path", [p for folder in PACKAGES for p in modules(folder)],
                         ids=lambda p: f"{p.parent.name}.{p.stem}")
def test_no_assert_and_no_swallowed_exception_outside_the_tests(path):
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.Assert), f"line {node.lineno}"
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None
            assert not all(isinstance(step, ast.Pass) for step in node.body), f"line {node.lineno}"


def loaded_by(statement, *names):
    """Which of the modules are loaded after the statement, in a fresh interpreter."""
    code = f"{statement}\nimport sys\nprint(*[n for n in {names!r} if n in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          cwd=ROOT).stdout.split()


HEAVY = ("torch", "matplotlib")


def test_the_book_loads_neither_torch_nor_matplotlib():
    assert loaded_by("import constructions; constructions.CATALOGUE", *HEAVY) == []
    assert loaded_by("import sys; sys.modules['torch'] = sys", *HEAVY) == ["torch"]


def test_importing_the_packages_costs_nothing():
    costly = ("numpy", "sympy", "flint", "networkx", "scipy")
    assert loaded_by("import iha_theory, constructions, iha_theory.cli, constructions.__main__", *costly) == []
    assert loaded_by("from iha_theory import forward", *costly) == ["numpy"]


def test_every_public_name_resolves_and_an_unknown_one_does_not():
    import constructions
    import iha_theory

    for package in (iha_theory, constructions):
        for name in dir(package):
            value = getattr(package, name)
            assert type(value).__name__ != "module"
            assert value.__doc__ is not None
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            _ = package.nonsense


def test_the_examples_in_the_docstrings_of_the_packages():
    import doctest

    import constructions
    import iha_theory

    for package in (iha_theory, constructions):
        result = doctest.testmod(package)
        assert result.attempted > 2
        assert result.failed == 0


def test_help_answers_without_loading_anything(capsys):
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "constructions", "--help"], capture_output=True, check=True, cwd=ROOT)
    capsys.readouterr()
    # Not a timed verdict: the seconds are shown when the test fails for its real reason, what help loads.
    seconds = time.monotonic() - started
    loaded = loaded_by("import sys; from constructions.__main__ import load; from iha_theory.cli import main\n"
                       "try: main(load, ['--help'])\nexcept SystemExit: pass", "numpy", "sympy", "flint")
    assert [name for name in loaded if name in ("numpy", "sympy", "flint")] == [], seconds
