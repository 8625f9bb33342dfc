"""An audit of somebody's code in a process of its own, which is stopped when it does not come back."""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from torch import nn

from iha_theory.conformance.adapter import Adapter
from iha_theory.conformance.built_in import built_in
from iha_theory.conformance.findings import Finding
from iha_theory.conformance.judgement import Judgement, not_applicable
from iha_theory.conformance.kit import PROPERTIES, finding, rows
from iha_theory.conformance.subject import named, told

#: Seconds for importing the code and making the layer. Seconds over a property's limit before the process is stopped.
LOADING, GRACE = 120.0, 5.0


def audited(layer: str, adapter: str | None = None, *, said: Mapping[str, Any] | None = None, black_box: bool = False,
            seed: int = 0, time_limit: float = 30.0,
            tell: Callable[[str], None] = lambda text: None) -> tuple[str, tuple[Finding, ...]]:
    """The name of a layer and the findings about it, made in another process.

    Args:
        layer: ``package.module:factory`` or ``file.py:factory``: a module, or what makes a module or a callable when it
            is called without arguments. The current folder is searched too. Importing it runs its code.
        adapter: likewise, an :class:`Adapter` or what makes one.
        said: fields of the adapter to set. black_box: leave the weights alone.
        seed, time_limit: as for :func:`iha_theory.conformance.rows`.
        tell: called with what is done, for people who wait.

    Raises:
        ValueError: what was named cannot be imported or made, or does not fit together.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, daemon=True,
                              args=(there, layer, adapter, dict(said or {}), black_box, seed, time_limit))
    process.start()
    there.close()
    try:
        tell(f"importing {layer}")
        answer = _received(here, LOADING)
        if answer is None:
            raise ValueError(f"{layer}: not imported and made within {LOADING:.0f} s")
        if isinstance(answer, EOFError):
            process.join()
            raise ValueError(f"{layer}: the process that imported it died ({_died(process.exitcode)})")
        kind, text = answer
        if kind == "refused":
            raise ValueError(text)
        found: list[Finding] = []
        while len(found) < len(PROPERTIES):
            key = PROPERTIES[len(found)].key
            tell(f"{text}: {key}")
            answer = _received(here, time_limit + GRACE)
            if isinstance(answer, Finding):
                found.append(answer)
                continue
            if isinstance(answer, tuple):
                raise ValueError(answer[1])
            if answer is None:
                why = f"did not come back within {time_limit:g} s, and its process had to be stopped"
            else:
                process.join()
                why = f"its process died ({_died(process.exitcode)})"
            found.extend(_after(len(found), why))
        return text, tuple(found)
    finally:
        process.kill()
        process.join()
        here.close()


def _received(here: Connection, seconds: float) -> Any:
    """What the other process sent; None if nothing came, the EOFError if it has gone."""
    try:
        return here.recv() if here.poll(seconds) else None
    except EOFError as error:
        return error


def _died(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _after(first: int, why: str) -> Iterator[Finding]:
    """The findings from a property on that took the process with it."""
    for number, item in enumerate(PROPERTIES[first:]):
        yield finding(item, Judgement(False, why) if number == 0 else not_applicable("the layer had to be stopped"))


def _work(there: Connection, layer: str, adapter: str | None, said: dict[str, Any], black_box: bool, seed: int,
          time_limit: float) -> None:
    """Runs in the other process: sends ("loaded", name) and then the findings, or ("refused", why)."""
    # What the code prints must not stand between the lines of the report.
    with suppress(OSError, AttributeError, ValueError):
        os.dup2(2, 1)
    threading.Thread(target=_follow, daemon=True).start()
    try:
        subject, chosen = made(layer), None if adapter is None else _adapter(adapter)
        known = chosen or built_in(subject) or Adapter(white_box=False)
        if black_box:
            known = replace(known, white_box=False)
        found = rows(subject, replace(known, **said), seed=seed, time_limit=time_limit)
        there.send(("loaded", named(subject)))
        for row in found:
            there.send(row)
    except ValueError as error:
        there.send(("refused", str(error)))
    except SystemExit as stop:
        there.send(("refused", f"{layer}: it stopped Python with exit code {stop.code}"))
    except Exception as error:
        there.send(("refused", f"{layer}: {told(error)}"))
    except KeyboardInterrupt:
        there.close()


def _follow() -> None:
    """End this process when the one that started it has ended, however it did."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def made(place: str) -> Any:
    """The layer that ``place`` names or makes.

    Raises:
        ValueError: it cannot be imported or made, or is no layer.
    """
    found = imported(place)
    if not isinstance(found, nn.Module):
        if not callable(found):
            raise ValueError(f"{place}: a {type(found).__name__}, wanted a module or what makes one")
        try:
            found = found()
        except Exception as error:
            raise ValueError(f"{place}: making the layer {told(error)}") from error
    if not callable(found):
        raise ValueError(f"{place}: made a {type(found).__name__}, wanted a module or a callable")
    return found


def _from_file(path: Path) -> Any:
    """The module of a file, under a name that no other module has."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    path = path.resolve()
    name = f"audited_{path.stem}_{abs(hash(str(path)))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path}: cannot be imported")
    # Its own folder comes first, as for a script.
    sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _adapter(place: str) -> Adapter:
    found = imported(place)
    if callable(found) and not isinstance(found, Adapter):
        try:
            found = found()
        except Exception as error:
            raise ValueError(f"{place}: making the adapter {told(error)}") from error
    if not isinstance(found, Adapter):
        raise ValueError(f"{place}: a {type(found).__name__}, wanted an iha_theory.conformance.Adapter")
    return found


def imported(place: str) -> Any:
    """What ``package.module:name`` or ``file.py:name`` names.

    Raises:
        ValueError: there is no such module or name, or importing it raised.
    """
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name:
        raise ValueError(f"{place!r}: wanted package.module:name or file.py:name")
    try:
        if where.endswith(".py"):
            module: Any = _from_file(Path(where))
        else:
            sys.path.insert(0, os.getcwd())
            module = importlib.import_module(where)
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"{place}: importing {where} {told(error)}") from error
    for part in name.split("."):
        if not hasattr(module, part):
            near = ", ".join(sorted(n for n in vars(module) if not n.startswith("_"))[:12])
            raise ValueError(f"{place}: {where} has no {part!r}; it has {near}")
        module = getattr(module, part)
    return module


