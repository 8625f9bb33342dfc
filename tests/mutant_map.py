"""Which tests bear on a mutated function; run in the folder of the mutants, it prints what it found as JSON.

A section of the catalogue bears on a module if one of its functions (the instance, the claims' sides, the mutants'
changes) lives in that module or in one that imports it, directly or not. A function that runs while the packages are
imported may decide anything that such a section holds; any other is reached by the tests that call it, which the
mutation tool has recorded.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

PACKAGES = ("iha_theory", "constructions")
ROOT_MODULE = "constructions.catalogue"


def function_of(mutant: str) -> str:
    """The name by which the tool records the function that a mutant changes."""
    return mutant.partition("__mutmut_")[0]


def module_of(mutant: str) -> str:
    """The module of a mutant: what stands before the tool's name of the function, which begins with x."""
    return function_of(mutant).rpartition(".")[0]


@dataclass(frozen=True)
class Bearing:
    """What :func:`found` finds, with the tests that the tool recorded.

    Attributes:
        imported: the functions that run while the packages are imported.
        loaded: the modules that importing the catalogue loads, in order.
        dependents: for each module, itself and those that import it, directly or not.
        sections: for each section of the catalogue, by its two positions, the modules of its functions.
        files: for each test file, the modules that it imports, directly or through the tests' own modules.
        table_files: the test files with a test for every section.
        recorded: for each function, the tests that call it.
        seconds: for each test, how long it took.
    """

    imported: list[str]
    loaded: list[str]
    dependents: Mapping[str, list[str]]
    sections: list[tuple[int, int, list[str]]]
    files: Mapping[str, list[str]]
    table_files: list[str]
    recorded: Mapping[str, list[str]]
    seconds: Mapping[str, float]

    def independent(self, module: str) -> list[str]:
        """The modules that a change of this one cannot reach by way of an import."""
        reached = self.dependents.get(module, [module])
        return [name for name in self.loaded if name not in reached and not name.startswith(f"{module}.")]

    def own_files(self, module: str) -> list[str]:
        """The test files that import a module."""
        return sorted(file for file, modules in self.files.items() if module in modules)

    def own_sections(self, function: str) -> list[tuple[int, int]]:
        """The sections that a function may decide while the packages are imported."""
        if function not in self.imported:
            return []
        reached = set(self.dependents[function.rpartition(".")[0]])
        return [(t, s) for t, s, modules in self.sections if reached & set(modules)]

    def own_tests(self, function: str) -> list[str]:
        """The tests that call a function; for one that runs on import, those that call any of its module."""
        module = function.rpartition(".")[0]
        names = [name for name in self.recorded if name.rpartition(".")[0] == module] if function in self.imported else []
        return sorted({test for name in (function, *names) for test in self.recorded.get(name, ())})


def source_of(module: str) -> Path | None:
    """The file of a module of this folder."""
    path = Path(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


@functools.cache
def imports(module: str) -> frozenset[str]:
    """The modules of this folder that a module imports anywhere, those behind a package's lazy names included."""
    file = source_of(module)
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())) if file else ():
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            lazy: Mapping[str, str] = {}
            if node.module in PACKAGES:
                lazy = importlib.import_module(node.module)._MODULE
            found |= {node.module} | {f"{node.module}.{lazy.get(alias.name, alias.name)}" for alias in node.names}
    return frozenset(name for name in found if source_of(name)) if module not in PACKAGES else frozenset()


def closure(start: str, through: str = "") -> frozenset[str]:
    """The modules that one imports, directly or by modules whose names begin with ``through``."""
    found, waiting = {start}, [start]
    while waiting:
        for name in imports(waiting.pop()) - found:
            found.add(name)
            if name.startswith(through):
                waiting.append(name)
    return frozenset(found)


def homes(value: Any, seen: set[int]) -> Iterator[str]:
    """The modules of the functions that a value of the catalogue holds."""
    if id(value) in seen or isinstance(value, str | int | float):
        return
    seen.add(id(value))
    if isinstance(value, FunctionType | MethodType):
        yield value.__module__
        for cell in getattr(value, "__closure__", None) or ():
            yield from homes(cell.cell_contents, seen)
    elif isinstance(value, functools.partial):
        yield from homes((value.func, value.args, value.keywords), seen)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from homes([getattr(value, field.name) for field in dataclasses.fields(value)], seen)
    elif isinstance(value, Mapping):
        yield from homes(list(value.values()), seen)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from homes(part, seen)


def imported_functions() -> tuple[list[str], list[str]]:
    """The functions that run, and the modules that are loaded, while the catalogue is imported."""
    from mutmut.mutation import trampoline

    called: set[str] = set()
    os.environ["MUTANT_UNDER_TEST"] = "stats"
    setattr(trampoline, "record_trampoline_hit", lambda name, caller=None: called.add(name))  # noqa: B010
    importlib.import_module(ROOT_MODULE)
    os.environ["MUTANT_UNDER_TEST"] = ""
    return sorted(called), [name for name in sys.modules if name.startswith(PACKAGES) and source_of(name)]


def table_files(files: Iterable[str], sections: set[int]) -> list[str]:
    """The test files that have a test with a section among its parameters."""
    import pytest

    found: set[str] = set()

    class Seen:
        def pytest_collection_modifyitems(self, items: list[Any]) -> None:
            found.update(item.nodeid.split("::")[0] for item in items if hasattr(item, "callspec")
                         and any(id(value) in sections for value in item.callspec.params.values()))

    with redirect_stdout(io.StringIO()):
        pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "--rootdir=.", *files], plugins=[Seen()])
    return sorted(found)


def found() -> dict[str, Any]:
    """Everything of :class:`Bearing` but what the tool recorded."""
    imported, loaded = imported_functions()
    catalogue = importlib.import_module(ROOT_MODULE).CATALOGUE
    places = [(t, s, section) for t, theorem in enumerate(catalogue) for s, section in enumerate(theorem.sections)]
    owners = {id(value): name for name in loaded for value in vars(sys.modules[name]).values()}
    sections = [(t, s, sorted(set(loaded) & {*homes(section, set()), owners.get(id(section), "")} - {ROOT_MODULE}))
                for t, s, section in places]
    every = {name for name in loaded if name.startswith(PACKAGES)}
    reach = {name: closure(name) for name in every}
    tests = {str(path): f"tests.{path.stem}" for path in sorted(Path("tests").glob("test_*.py"))}
    files = {path: sorted(closure(name, "tests")) for path, name in tests.items()}
    whole = [path for path, modules in files.items() if ROOT_MODULE in modules and ".sections" in Path(path).read_text()]
    return {
        "imported": imported,
        "loaded": loaded,
        "dependents": {name: sorted({name} | {other for other in every if name in reach[other]}) for name in sorted(every)},
        "sections": sections,
        "files": files,
        "table_files": table_files(whole, {id(section) for _, _, section in places}),
    }


if __name__ == "__main__":
    print(json.dumps(found()))
