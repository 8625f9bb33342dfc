"""Weights on disk: one safetensors file with the arrays and how the layer is meant to be run."""

from __future__ import annotations

import json
import os
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from iha_theory.layer import AXES, IHA
from iha_theory.scalars import as_fraction, to_float

FORMAT = "iha-theory 1"


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file whole or not at all: into a neighbour first, which then takes its name.

    Raises:
        ValueError: the folder does not exist or cannot be written to, or the path is a folder.
    """
    check_writable(path)
    # A link is followed, so that what it names is what changes.
    target = Path(os.path.realpath(path))
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise ValueError(f"{path}: cannot be written ({error.strerror}); nothing was written") from None
        raise


def check_writable(path: str | Path, *inputs: str | Path | None) -> None:
    """Raise ValueError if a file cannot be written at ``path``, before the work that would fill it.

    A folder, a device or a pipe is refused, as is a file that is one of the ``inputs`` of the same command.
    """
    target = Path(os.path.realpath(path))
    folder = target.parent
    if target.is_dir():
        raise ValueError(f"{path}: is a folder; name a file in it")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path}: is no ordinary file; name one")
    if any(given is not None and Path(given).exists() and target == Path(os.path.realpath(given)) for given in inputs):
        raise ValueError(f"{path}: is an input of this command; name another file")
    if len(os.fsencode(target.name)) > 200:
        raise ValueError(f"{target.name[:40]}...: the name is too long; take at most 200 bytes")
    if not folder.is_dir():
        raise ValueError(f"{path}: there is no folder {Path(path).parent}; make it first")
    if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise ValueError(f"{path}: cannot be written; choose another place or change its permissions")


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def save_weights(path: str | Path, weights: IHA, about: Mapping[str, str]) -> None:
    """Save a layer in float64, with ``about`` (construction, attention, sizes) as the file's metadata.

    Raises:
        ValueError: an entry is no double (it would be rounded), or the file cannot be written.
    """
    from safetensors.numpy import save

    tensors: dict[str, np.ndarray] = {}
    for name, array in weights.fields().items():
        tensors[name] = np.ascontiguousarray(to_float(array))
        for index, value in np.ndenumerate(array):
            if not isinstance(value, float) and as_fraction(value) != as_fraction(float(tensors[name][index])):
                raise ValueError(f"{path}: {name}{list(index)} = {value} is no float64; take fewer powers or tokens")
    write_whole(path, save(tensors, {"format": FORMAT, **about}))


def load_weights(path: str | Path) -> tuple[IHA, dict[str, str]]:
    """The layer in a file that :func:`save_weights` wrote, in float64, and what the file says about it.

    Raises:
        ValueError: no such file, not a weights file, or arrays that do not fit together.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror}); give a file written by build") from None
    try:
        tensors = load(content)
        about = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]]).get("__metadata__", {})
    except (SafetensorError, struct.error, ValueError) as error:
        raise ValueError(f"{path}: not a safetensors file ({error}); give a file written by build") from None
    if about.get("format") != FORMAT:
        raise ValueError(f"{path}: format {about.get('format')!r}, wanted {FORMAT!r}; give a file written by build")
    unknown = sorted(set(tensors) - set(AXES))
    if unknown:
        raise ValueError(f"{path}: unknown weights {', '.join(unknown)}; wanted {', '.join(AXES)}")
    missing = [name for name in ("w_q", "w_k", "w_v") if name not in tensors]
    if missing:
        raise ValueError(f"{path}: {', '.join(missing)} missing; give a file written by build")
    for name, array in tensors.items():
        if array.dtype != np.float64 or not np.isfinite(array).all():
            raise ValueError(f"{path}: {name} is not finite float64 (dtype {array.dtype}); give a file written by build")
    try:
        return IHA(**tensors), about
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
