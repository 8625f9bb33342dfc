"""Read a matrix from a file as exact data: every entry becomes a `flint.fmpq`, nothing is rounded or guessed.

Formats, chosen by the suffix:

* `.csv`: one row a line, entries between commas, no header; blank lines and lines that start with `#` are
  skipped;
* `.mtx`: Matrix Market, coordinate or array, real, integer or pattern, general, symmetric or skew-symmetric;
  each position at most once, since elsewhere repeated entries are sometimes summed and sometimes overwritten;
* `.npy`, `.npz`: a numpy array of two axes, of booleans, integers or floats; a float stands for the exact
  value of its binary digits, so that the double nearest to 0.1 is not 1/10; a `.npz` archive holds exactly
  one such array. Nothing is unpickled.
"""

import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import flint
import numpy as np

from iha_theory.files import (
    MAX_FILE_BYTES,
    FilePath,
    known_suffix,
    number_at,
    read_bytes,
    read_text,
    refusal,
    refuse_large,
    shown,
    text_lines,
    zeros,
)

MATRIX_SUFFIXES = (".csv", ".mtx", ".npy", ".npz")

_NPY_TYPE = re.compile(r"""['"]descr['"]\s*:\s*['"]([^'"]{1,40})['"]""")
_NPY_ORDER = re.compile(r"""['"]fortran_order['"]\s*:\s*(True|False)""")
_NPY_SHAPE = re.compile(r"""['"]shape['"]\s*:\s*\(([0-9, ]*)\)""")


def load_matrix(path: FilePath) -> np.ndarray:
    """The matrix in a file, an object array (row, column) of `flint.fmpq`; `ValueError` if it is refused."""
    readers = {".csv": _read_csv, ".mtx": _read_matrix_market, ".npy": _read_npy, ".npz": _read_npz}
    return readers[known_suffix(path, MATRIX_SUFFIXES)](path)


def load_features(path: FilePath, rows: int) -> np.ndarray:
    """The features in a matrix file, an object array (node, feature) of `flint.fmpq` with `rows` nodes."""
    features = load_matrix(path)
    if len(features) != rows:
        raise refusal(path, f"has {len(features)} rows, wanted {rows}: one row of features for each node")
    return features


def _read_csv(path: FilePath) -> np.ndarray:
    rows, first = [], 0
    for number, line in text_lines(read_text(path)):
        if not line or line.startswith("#"):
            continue
        width, first = line.count(",") + 1, first or number
        if rows and width != len(rows[0]):
            wanted = f"{len(rows[0])} as in line {first}"
            raise refusal(path, f"found {width} entries in a row, wanted {wanted}", number)
        refuse_large(path, len(rows) + 1, width)
        cells = enumerate(line.split(","), 1)
        rows.append([number_at(path, cell.strip(), number, column) for column, cell in cells])
    if not rows:
        raise refusal(path, "holds no row; wanted numbers between commas")
    matrix = zeros(path, len(rows), len(rows[0]))
    matrix[...] = rows
    return matrix


class _Layout(NamedTuple):
    """What the header and the line of sizes of a Matrix Market file promise."""

    dense: bool
    field: str
    symmetry: str
    rows: int
    columns: int
    entries: int
    line: int  # of the sizes

    def places(self) -> Iterator[tuple[int, int]]:
        """The places of a dense file in order: by columns, of a symmetric matrix the lower triangle only."""
        for column in range(self.columns):
            below = {"general": 0, "symmetric": column, "skew-symmetric": column + 1}[self.symmetry]
            for row in range(below, self.rows):
                yield row, column


def _matrix_market_layout(path: FilePath, header: str, number: int, sizes: list[str]) -> _Layout:
    words = header.lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise refusal(path, "wanted a header such as '%%MatrixMarket matrix coordinate real general'", 1)
    for word, known in zip(words[2:], (("coordinate", "array"), ("real", "integer", "pattern"),
                                       ("general", "symmetric", "skew-symmetric")), strict=True):
        if word not in known:
            raise refusal(path, f"the header says {shown(word)}, wanted one of {', '.join(known)}", 1)
    dense, field, symmetry = words[2] == "array", words[3], words[4]
    if dense and field == "pattern":
        raise refusal(path, "the header says array and pattern, wanted numbers or the layout coordinate", 1)
    axes = ("rows", "columns") if dense else ("rows", "columns", "entries")
    if len(sizes) != len(axes) or not all(re.fullmatch("[0-9]{1,18}", size) for size in sizes):
        found = shown(" ".join(sizes))
        raise refusal(path, f"found the sizes {found}, wanted the numbers of {', '.join(axes)}", number)
    rows, columns = int(sizes[0]), int(sizes[1])
    if symmetry != "general" and rows != columns:
        raise refusal(path, f"is {symmetry} with {rows} rows and {columns} columns, wanted as many", number)
    refuse_large(path, rows, columns)
    layout = _Layout(dense, field, symmetry, rows, columns, 0, number)
    return layout._replace(entries=sum(1 for _ in layout.places()) if dense else int(sizes[2]))


def _matrix_market_entries(
    path: FilePath, layout: _Layout, body: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, int, int, Any]]:
    """Each entry as (line, row, column, value); their number is what the sizes promise."""
    width = 1 if layout.dense else 2 if layout.field == "pattern" else 3
    places, given, number = layout.places(), 0, layout.line
    for given, (number, words) in enumerate(body, 1):
        if given > layout.entries:
            raise refusal(path, f"found an entry beyond the {layout.entries} that the sizes promise", number)
        if len(words) != width:
            raise refusal(path, f"found {len(words)} words, wanted {width} as the header says", number)
        if layout.dense:
            row, column = next(places)
        else:
            row = _index_at(path, words[0], layout.rows, number, 1)
            column = _index_at(path, words[1], layout.columns, number, 2)
        value = flint.fmpq(1) if layout.field == "pattern" else number_at(path, words[-1], number, width)
        if layout.field == "integer" and value.q != 1:
            raise refusal(path, f"found {shown(words[-1])}, wanted an integer by the header", number, width)
        yield number, row, column, value
    if given != layout.entries:
        raise refusal(path, f"ends after {given} entries, wanted {layout.entries} by the sizes", number)


def _index_at(path: FilePath, word: str, size: int, line: int, column: int) -> int:
    """An index of a Matrix Market file, counted there from 1 and here from 0."""
    if not re.fullmatch("[0-9]{1,18}", word) or not 1 <= int(word) <= size:
        raise refusal(path, f"found the index {shown(word)}, wanted a number from 1 to {size}", line, column)
    return int(word) - 1


def _read_matrix_market(path: FilePath) -> np.ndarray:
    text = read_text(path)
    lines = ((number, line) for number, line in text_lines(text) if line and not line.startswith("%"))
    body = ((number, line.split(maxsplit=4)) for number, line in lines)
    layout = _matrix_market_layout(path, text[:200].partition("\n")[0], *next(body, (1, [])))
    matrix = zeros(path, layout.rows, layout.columns)
    seen = np.zeros(matrix.shape, dtype=bool)
    for number, row, column, value in _matrix_market_entries(path, layout, body):
        if seen[row, column]:
            raise refusal(path, f"found row {row + 1}, column {column + 1} a second time, wanted each entry "
                                "once (one triangle of a symmetric one)", number)
        if layout.symmetry == "skew-symmetric" and row == column and value:
            raise refusal(path, "found a diagonal entry of a skew-symmetric matrix, wanted 0 or none", number)
        if layout.symmetry != "general":
            seen[column, row], matrix[column, row] = True, value if layout.symmetry == "symmetric" else -value
        seen[row, column], matrix[row, column] = True, value
    return matrix


def _read_npy(path: FilePath) -> np.ndarray:
    return _array_of(path, read_bytes(path))


def _read_npz(path: FilePath) -> np.ndarray:
    data, member = read_bytes(path), b""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            if len(names) == 1:
                with archive.open(names[0]) as stream:
                    member = stream.read(MAX_FILE_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, ValueError, RuntimeError, EOFError,
            OSError) as error:
        raise refusal(path, f"is no archive ({shown(str(error))}); save it with numpy.savez") from None
    if len(names) != 1:
        hint = "; write a sparse one with scipy.io.mmwrite as .mtx" if "format.npy" in names else ""
        raise refusal(path, f"holds {len(names)} arrays, wanted exactly one{hint}")
    if len(member) > MAX_FILE_BYTES:
        raise refusal(path, f"unpacks to more than {MAX_FILE_BYTES} bytes, the limit; take a smaller matrix")
    return _array_of(path, member)


def _array_of(path: FilePath, data: bytes) -> np.ndarray:
    """The array in the bytes of a `.npy` file; its type and shape are judged before it is built."""
    start = 10 + int.from_bytes(data[8:10], "little")
    header = data[10:start].decode("latin-1")
    parts = [pattern.search(header) for pattern in (_NPY_TYPE, _NPY_ORDER, _NPY_SHAPE)]
    if not data.startswith(b"\x93NUMPY\x01\x00") or not all(parts):
        raise refusal(path, "is no .npy file of format 1.0 with one plain type; save it with numpy.save")
    code, order, sizes = (part[1] for part in parts if part)
    if not re.fullmatch("[<>|=](b1|[iu][1248]|f[248])", code):
        kinds = {"c": "complex numbers", "O": "Python objects", "S": "strings", "U": "strings"}
        kind = kinds.get(code[1:2], f"the type {shown(code)}")
        raise refusal(path, f"holds {kind}, wanted booleans, integers or floats of at most 64 bits")
    shape = [int(size) for size in sizes.split(",") if re.fullmatch(" *[0-9]{1,18} *", size)]
    if len(shape) != 2 or sizes.count(",") != 1:
        raise refusal(path, f"holds an array of the shape {shown(sizes)}, wanted 2 axes: rows and columns")
    matrix, dtype = zeros(path, *shape), np.dtype(code)
    if len(data) - start < matrix.size * dtype.itemsize:
        raise refusal(path, f"is cut short after {max(len(data) - start, 0)} bytes of data, wanted "
                            f"{matrix.size * dtype.itemsize}")
    flat = np.frombuffer(data, dtype, matrix.size, start)
    array = flat.reshape(shape, order="F" if order == "True" else "C")
    for row, column in zip(*np.nonzero(array), strict=True):
        entry: Any = array[row, column]
        if not np.isfinite(entry):
            raise refusal(path, f"row {row + 1}, column {column + 1} is {entry}, wanted a finite number")
        ratio = entry.as_integer_ratio() if dtype.kind == "f" else (entry, 1)
        matrix[row, column] = flint.fmpq(*map(int, ratio))
    return matrix
