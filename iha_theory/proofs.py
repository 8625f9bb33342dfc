"""Which machine-checked proofs count: those whose files, as they are now, the proof checker accepted without axioms.

``make proofs`` runs the checker and writes ``accepted.json`` beside the proofs: for each file its digest, which covers
the file and every file of the project that it requires, and the theorems found in it to rest on no axiom. A file that
was edited since, or that stands on an edited one, has another digest and counts no more. The list also binds
``instances.txt``, the arrays that the checker printed for small layers, by which the tests tie the proofs' layer to
:func:`iha_theory.forward`.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from iha_theory.claims import Proof

LIST = "accepted.json"
INSTANCES, PRINTED = "Instances.v", "instances.txt"
_REQUIRES = re.compile(r"From\s+IHA\s+Require\s+(?:Import|Export)\s+([\w\s]+)\.")


def requires(text: str) -> list[str]:
    """The project's files that a proof file requires directly, in order."""
    return [f"{name}.v" for names in _REQUIRES.findall(text) for name in names.split()]


def closure(folder: Path, file: str) -> list[str]:
    """Everything of the project that a file stands on, each once, and then the file; a missing file is named, too."""
    ordered: list[str] = []
    seen: set[str] = set()

    def visit(name: str) -> None:
        if name in seen:
            return
        seen.add(name)
        path = folder / name
        for needed in requires(path.read_text(encoding="utf-8")) if path.is_file() else ():
            visit(needed)
        ordered.append(name)

    visit(file)
    return ordered


def digest(folder: Path, file: str) -> str:
    """SHA-256 over the names and contents of :func:`closure`; a missing file has no content that could be accepted."""
    total = hashlib.sha256()
    for name in closure(folder, file):
        path = folder / name
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"
        total.update(f"{name} {content}\n".encode())
    return total.hexdigest()


def text_digest(text: str) -> str:
    """SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def _listed(folder: Path) -> dict[str, Any]:
    path = folder / LIST
    if not path.is_file():
        return {"files": {}, "instances": ""}
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        return {"files": dict(listed["files"]), "instances": str(listed["instances"])}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not a list of accepted proofs ({error!r}); run make proofs") from None


@cache
def accepted(folder: Path) -> dict[str, tuple[str, ...]]:
    """File to the theorems in it that count, for the files that are as they were when the checker accepted them.

    Raises:
        ValueError: the list is not one that ``make proofs`` wrote.
    """
    return {file: tuple(entry["theorems"]) for file, entry in _listed(folder)["files"].items()
            if digest(folder, file) == entry["digest"]}


def is_accepted(proof: Proof) -> bool:
    """Whether the checker accepted this theorem, in this file as it is now."""
    return proof.name in accepted(proof.folder).get(proof.file, ())


def printed_instances(folder: Path) -> str:
    """What the checker printed for the small instances: lines ``INSTANCE ARRAY VALUES`` (see ``Instances.v``).

    Raises:
        ValueError: the proofs or the printed text were edited since the checker wrote it.
    """
    if INSTANCES not in accepted(folder):
        raise ValueError(f"{folder / INSTANCES}: not as the checker accepted it, or a file that it requires is not; "
                         "run make proofs")
    text = (folder / PRINTED).read_text(encoding="utf-8") if (folder / PRINTED).is_file() else ""
    if text_digest(text) != _listed(folder)["instances"]:
        raise ValueError(f"{folder / PRINTED}: not what the checker printed; run make proofs")
    return text
