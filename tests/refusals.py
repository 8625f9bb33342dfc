"""What the tests of reading files share: small files, exact entries as text, and the line of a refusal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import fmpq


def refusal_of(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """The message of the ValueError that a call raises, checked to be one printable line."""
    with pytest.raises(ValueError, match=r"\S") as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 400
    return message


def written(folder: Path, name: str, content: str | bytes) -> Path:
    """The path of a new file with a content."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def texts(matrix: np.ndarray) -> list[list[str]]:
    """The entries as they print, after a check that they are exact."""
    assert matrix.dtype == object
    assert all(type(entry) is fmpq for entry in matrix.flat)
    return [[str(entry) for entry in row] for row in matrix]
