"""What may be read from a user's file, and how a file is refused.

Files are data. Only regular files of at most `MAX_FILE_BYTES` are read, text is UTF-8, and no array over
`MAX_ARRAY_BYTES` is allocated, whatever a header promises. A number in a text is a decimal (`2`, `-0.5`,
`1e-3`) or a quotient (`1/3`) and is read exactly: 0.1 is 1/10. It has at most `MAX_DIGITS` digits and an
exponent of at most `MAX_EXPONENT`, so that `1e999999999` is refused and not expanded.

Whatever cannot be read ends as a `ValueError` of one line, which names the file, the place, what was found
and what was wanted.
"""

import difflib
import functools
import io
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import flint
import numpy as np

MAX_FILE_BYTES = 128 * 2**20
MAX_ARRAY_BYTES = 512 * 2**20
BYTES_PER_ENTRY = 48  # a pointer in the object array, and a flint.fmpq of two machine words
MAX_DIGITS = 1000
MAX_EXPONENT = 1000

FilePath = str | os.PathLike[str]

_DECIMAL = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?")
_QUOTIENT = re.compile(r"([+-]?[0-9]+)/([0-9]+)")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_COMPLEX = re.compile(r"\(?[0-9.eE+-]*[ij]\)?")
_WANTED = "a finite number such as 2, -0.5, 1e-3 or 1/3"


def refusal(path: FilePath, problem: str, line: int = 0, column: int = 0) -> ValueError:
    """The error of one line for a file, at a line and a column counted from 1 where they are known."""
    name = os.fspath(path)
    place = "".join(f", {axis} {at}" for axis, at in (("line", line), ("column", column)) if at)
    return ValueError(f"{name if name.isprintable() else repr(name)}{place}: {problem}")


def shown(text: str) -> str:
    """A text from a file, quoted, on one line and no longer than a reader needs."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def suggestion(word: str, known: Iterable[str]) -> str:
    """What the user may have meant by `word`, and all that is known."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=2)
    listed = ", ".join(name if name.isprintable() else shown(name) for name in names[:20])
    return (f"did you mean {' or '.join(map(shown, near))}? " if near else "") + f"known: {listed}"


def known_suffix(path: FilePath, suffixes: Iterable[str]) -> str:
    """The suffix of a file in lower case, refused unless it is one of `suffixes`."""
    if os.path.isdir(path):
        raise refusal(path, "is a directory; wanted the path of a file")
    suffix = Path(path).suffix.lower()
    if suffix not in suffixes:
        raise refusal(path, f"the suffix {shown(suffix)} names no format; {suggestion(suffix, suffixes)}")
    return suffix


def read_bytes(path: FilePath) -> bytes:
    """The bytes of a regular file that is not blank and not over `MAX_FILE_BYTES`."""
    try:
        status = os.stat(path)
        data = b""
        if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FILE_BYTES:
            with open(path, "rb") as stream:
                data = stream.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise refusal(path, f"cannot be read ({reason}); wanted the path of a readable file") from None
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
        raise refusal(path, f"is {kind}; wanted the path of a file")
    if max(status.st_size, len(data)) > MAX_FILE_BYTES:
        found = max(status.st_size, len(data))
        raise refusal(path, f"has {found} bytes, the limit is {MAX_FILE_BYTES}; take a smaller file")
    if not data.strip():
        raise refusal(path, "is empty; wanted a file with content")
    return data


def read_text(path: FilePath) -> str:
    """The text of a UTF-8 file, with every line ended by a line feed."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
        raise refusal(path, f"is not UTF-8 text ({found}); save it as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def text_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text, stripped, numbered from 1."""
    for number, line in enumerate(io.StringIO(text), 1):
        yield number, line.strip()


@functools.lru_cache(maxsize=4096)
def exact_number(text: str) -> Any:
    """The rational that a decimal or a quotient denotes, as a `flint.fmpq`; `ValueError` if there is none."""
    if quotient := _QUOTIENT.fullmatch(text):
        return _exact_quotient(text, *quotient.groups())
    if decimal := _DECIMAL.fullmatch(text):
        return _exact_decimal(text, *decimal.groups(""))
    kinds = (("not finite", _NOT_FINITE), ("complex", _COMPLEX))
    kind = next((kind for kind, pattern in kinds if pattern.fullmatch(text)), "not a number")
    raise ValueError(f"found {shown(text)}, which is {kind}; wanted {_WANTED}")


def _exact_quotient(text: str, numerator: str, denominator: str) -> Any:
    if max(len(numerator), len(denominator)) > MAX_DIGITS:
        raise ValueError(f"found {shown(text)}, wanted at most {MAX_DIGITS} characters on each side of the /")
    if not int(denominator):
        raise ValueError(f"found {shown(text)}, a division by zero; wanted {_WANTED}")
    return flint.fmpq(int(numerator), int(denominator))


def _exact_decimal(text: str, sign: str, whole: str, fraction: str, exponent: str) -> Any:
    if len(whole) + len(fraction) > MAX_DIGITS:
        found = len(whole) + len(fraction)
        raise ValueError(f"found {shown(text)} with {found} digits, wanted at most {MAX_DIGITS} digits")
    power = exponent.lstrip("+-").lstrip("0") or "0"
    if len(power) > len(str(MAX_EXPONENT)) or int(power) > MAX_EXPONENT:
        raise ValueError(f"found {shown(text)}, wanted an exponent from -{MAX_EXPONENT} to {MAX_EXPONENT}")
    value, scale = flint.fmpq(int(sign + whole + fraction), 10 ** len(fraction)), 10 ** int(power)
    return value / scale if exponent.startswith("-") else value * scale


def number_at(path: FilePath, text: str, line: int, column: int, what: str = "") -> Any:
    """`exact_number`, with the file, the place and `what` the number is named in the error."""
    try:
        return exact_number(text)
    except ValueError as error:
        raise refusal(path, what + str(error), line, column) from None


def zeros(path: FilePath, rows: int, columns: int) -> np.ndarray:
    """An object array (rows, columns) of exact zeros, refused before it is allocated if it is too large."""
    if rows < 1 or columns < 1:
        raise refusal(path, f"holds {rows} rows and {columns} columns; wanted at least one of each")
    refuse_large(path, rows, columns)
    return np.full((rows, columns), flint.fmpq(0), dtype=object)


def refuse_large(path: FilePath, rows: int, columns: int) -> None:
    """Refuse a matrix whose exact entries would take more than `MAX_ARRAY_BYTES`, with the estimate."""
    needed = rows * columns * BYTES_PER_ENTRY
    if needed > MAX_ARRAY_BYTES:
        size, limit = (f"{number / 2**30:.4g} GiB" for number in (needed, MAX_ARRAY_BYTES))
        raise refusal(path, f"{rows} rows and {columns} columns of exact numbers need about {size} of "
                            f"memory, the limit is {limit}; take a smaller matrix")
