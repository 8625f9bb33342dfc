"""A matrix in a file is read exactly, or refused by one line that names the place."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from iha_theory.files import MAX_FILE_BYTES
from iha_theory.matrices import load_features, load_matrix
from tests.refusals import refusal_of, texts, written

MARKET = "%%MatrixMarket matrix "
COORDINATE = MARKET + "coordinate real general\n"


def numpy_header(shape: str, version: bytes = b"\x01\x00") -> bytes:
    """The start of a `.npy` file that promises doubles in a shape, without them."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape})}}".encode()
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header


def test_a_matrix_in_csv_is_rectangular_and_exact(tmp_path):
    path = written(tmp_path, "a.csv", "# a remark\n0.1, -2 ,1/3\n\n1e-2,0,7\n")
    assert texts(load_matrix(path)) == [["1/10", "-2", "1/3"], ["1/100", "0", "7"]]


@pytest.mark.parametrize(("content", "expected"), [
    ("coordinate real general\n% a remark\n2 3 2\n1 3 0.1\n2 1 -4\n", [["0", "0", "1/10"], ["-4", "0", "0"]]),
    ("coordinate pattern general\n\n2 2 1\n \n1 2\n", [["0", "1"], ["0", "0"]]),
    ("coordinate integer symmetric\n2 2 2\n1 1 5\n2 1 7\n", [["5", "7"], ["7", "0"]]),
    ("coordinate real symmetric\n2 2 1\n1 2 1/2\n", [["0", "1/2"], ["1/2", "0"]]),
    ("coordinate real skew-symmetric\n2 2 2\n2 1 3\n1 1 0\n", [["0", "-3"], ["3", "0"]]),
    ("array real general\n2 3\n1\n2\n3\n4\n5\n6\n", [["1", "3", "5"], ["2", "4", "6"]]),
    ("array real symmetric\n2 2\n1\n2\n3\n", [["1", "2"], ["2", "3"]]),
    ("array integer skew-symmetric\n3 3\n1\n2\n3\n", [["0", "-1", "-2"], ["1", "0", "-3"], ["2", "3", "0"]]),
    ("Array REAL General\n1 1\n0.1\n", [["1/10"]]),
])
def test_a_matrix_market_file_is_exact(tmp_path, content, expected):
    assert texts(load_matrix(written(tmp_path, "a.mtx", MARKET + content))) == expected


@pytest.mark.parametrize(("symmetry", "matrix"), [
    ("general", [[0, 2, -3], [5, 0, 0], [0, 7, 11]]),
    ("symmetric", [[1, 2, 0], [2, 0, 5], [0, 5, 3]]),
    ("skew-symmetric", [[0, 2, 0], [-2, 0, 5], [0, -5, 0]]),
])
@pytest.mark.parametrize("sparse", [True, False])
def test_what_scipy_writes_as_matrix_market_is_read_back(tmp_path, symmetry, matrix, sparse):
    array, path = np.array(matrix), str(tmp_path / "a.mtx")
    scipy.io.mmwrite(path, scipy.sparse.coo_matrix(array) if sparse else array, symmetry=symmetry)
    assert texts(load_matrix(path)) == [[str(entry) for entry in row] for row in matrix]


@pytest.mark.parametrize("kind", ["bool", "int8", "uint64", "<i4", ">i2", "float16", "float32", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_numpy_array_is_read_back(tmp_path, kind, order):
    entries = [[0, 1, 1], [1, 0, 1]] if kind == "bool" else [[0, 1, 2], [3, 5, 7]]
    array = np.array(entries, dtype=kind, order=order)
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "b.npz", array)
    np.savez_compressed(tmp_path / "c.npz", array)
    for name in ("a.npy", "b.npz", "c.npz"):
        assert texts(load_matrix(tmp_path / name)) == [[str(entry) for entry in row] for row in entries]


def test_integers_of_64_bits_are_exact(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[2**64 - 1]], dtype=np.uint64))
    np.save(tmp_path / "b.npy", np.array([[-(2**63)]]))
    assert texts(load_matrix(tmp_path / "a.npy")) == [[str(2**64 - 1)]]
    assert texts(load_matrix(tmp_path / "b.npy")) == [[str(-(2**63))]]


def test_a_float_is_the_exact_value_of_its_binary_digits(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[0.1, 5e-324], [-0.5, 2.0**1000]]))
    assert texts(load_matrix(tmp_path / "a.npy")) == [
        ["3602879701896397/36028797018963968", f"1/{2**1074}"], ["-1/2", str(2**1000)]]


def test_features_need_one_row_for_each_node(tmp_path):
    path = written(tmp_path, "x.csv", "1,0.5\n2,0\n3,0\n")
    assert texts(load_features(path, 3)) == [["1", "1/2"], ["2", "0"], ["3", "0"]]
    assert refusal_of(load_features, path, 4) == (
        f"{path}: has 3 rows, wanted 4: one row of features for each node")


@pytest.mark.parametrize(("content", "place", "reason"), [
    ("# only a remark\n", "", "holds no row"),
    ("0,1\n\n1\n", ", line 3", "found 1 entries in a row, wanted 2 as in line 1"),
    ("# a remark\n0,1\n1\n", ", line 3", "found 1 entries in a row, wanted 2 as in line 2"),
    ("0,1\n1,\n", ", line 2, column 2", "found '', which is not a number"),
    ("0,1\n1;0\n", ", line 2", "found 1 entries in a row, wanted 2"),
    ("0,nan\n", ", line 1, column 2", "found 'nan', which is not finite"),
    ("0,1+2j\n", ", line 1, column 2", "found '1+2j', which is complex"),
    ("0,\x00\n", ", line 1, column 2", "found '\\x00', which is not a number"),
    ("," * 12_000_000, "", "1 rows and 12000001 columns of exact numbers need about 0.5364 GiB"),
    ("0,0,0\n" * 3, "", "3 rows and 3 columns of exact numbers need about"),
], ids=range(10))
def test_a_csv_file_is_refused_with_its_place(tmp_path, monkeypatch, content, place, reason):
    if content == "0,0,0\n" * 3:
        monkeypatch.setattr("iha_theory.files.MAX_ARRAY_BYTES", 6 * 48)
    path = written(tmp_path, "a.csv", content)
    message = refusal_of(load_matrix, path)
    assert message.startswith(f"{path}{place}: ")
    assert reason in message


@pytest.mark.parametrize(("content", "place", "reason"), [
    ("1 2 3\n", ", line 1", "wanted a header such as '%%MatrixMarket matrix coordinate real general'"),
    (MARKET + "array real\n1 1\n1\n", ", line 1", "wanted a header such as"),
    ("%%MatrixMarket vector array real general\n1 1\n1\n", ", line 1", "wanted a header such as"),
    (MARKET + "coordinate complex general\n1 1 1\n", ", line 1", "says 'complex', wanted one of real"),
    (MARKET + "sparse real general\n1 1 1\n", ", line 1", "says 'sparse', wanted one of coordinate, array"),
    (MARKET + "coordinate real hermitian\n1 1 0\n", ", line 1", "says 'hermitian', wanted one of general"),
    (MARKET + "array pattern general\n1 1\n", ", line 1", "says array and pattern, wanted numbers"),
    (MARKET + "array real general\n", ", line 1", "found the sizes '', wanted the numbers of rows, col"),
    (MARKET + "array real general\n0 0\n", "", "holds 0 rows and 0 columns"),
    (MARKET + "coordinate real symmetric\n2 3 0\n", ", line 2", "symmetric with 2 rows and 3 columns"),
    (COORDINATE + "%\n2 2\n", ", line 3", "'2 2', wanted the numbers of rows, columns, entries"),
    (COORDINATE + "2 2 -1\n", ", line 2", "found the sizes '2 2 -1'"),
    (COORDINATE + "1000000000 1000000000 1\n1 1 1\n", "", "need about 4.47e+10 GiB of memory"),
    (MARKET + "array real general\n1000000000 1000000000\n1\n", "", "need about 4.47e+10 GiB of memory"),
    (COORDINATE + "2 2 1\n3 1 1\n", ", line 3, column 1", "found the index '3', wanted a number from 1 to 2"),
    (COORDINATE + "2 2 1\n1 0 1\n", ", line 3, column 2", "found the index '0', wanted a number from 1 to 2"),
    (COORDINATE + "2 2 1\n1 1.0 1\n", ", line 3, column 2", "found the index '1.0'"),
    (COORDINATE + "2 2 1\n1 2\n", ", line 3", "found 2 words, wanted 3 as the header says"),
    (COORDINATE + "2 2 1\n1 2 one\n", ", line 3, column 3", "found 'one', which is not a number"),
    (COORDINATE + "2 2 2\n1 2 1\n", ", line 3", "ends after 1 entries, wanted 2 by the sizes"),
    (COORDINATE + "2 2 1\n", ", line 2", "ends after 0 entries, wanted 1 by the sizes"),
    (COORDINATE + "2 2 1\n1 2 1\n2 1 1\n", ", line 4", "found an entry beyond the 1"),
    (COORDINATE + "2 2 2\n1 2 1\n1 2 1\n", ", line 4", "found row 1, column 2 a second time"),
    (MARKET + "coordinate integer general\n1 1 1\n1 1 1.5\n", ", line 3, column 3", "found '1.5', want"),
    (MARKET + "coordinate real symmetric\n2 2 2\n1 2 1\n2 1 1\n", ", line 4", "row 2, column 1 a second"),
    (MARKET + "coordinate real skew-symmetric\n2 2 1\n1 1 1\n", ", line 3", "found a diagonal entry"),
    (MARKET + "array real symmetric\n2 2\n1\n2\n3\n4\n", ", line 6", "found an entry beyond the 3"),
])
def test_a_matrix_market_file_is_refused_with_its_place(tmp_path, content, place, reason):
    path = written(tmp_path, "a.mtx", content)
    message = refusal_of(load_matrix, path)
    assert message.startswith(f"{path}{place}: ")
    assert reason in message


@pytest.mark.parametrize(("name", "content", "reason"), [
    ("a.npy", b"no array", "is no .npy file of format 1.0"),
    ("a.npy", numpy_header("9999999, 9999999"), "9999999 rows and 9999999 columns of exact"),
    ("a.npy", numpy_header("1" * 30 + ", 1"), "wanted 2 axes"),
    ("a.npy", numpy_header("1 2, 3, 4"), "the shape '1 2, 3, 4', wanted 2 axes"),
    ("a.npy", numpy_header("1, 1", b"\x02\x00"), "is no .npy file of format 1.0"),
    ("a.npy", numpy_header("1, 2"), "is cut short after 0 bytes of data, wanted 16"),
    ("a.npz", b"no archive", "is no archive ('File is not a zip file'); save it with numpy.savez"),
    ("a.xls", b"1", "the suffix '.xls' names no format; known: .csv, .mtx, .npy, .npz"),
])
def test_a_binary_file_is_refused(tmp_path, name, content, reason):
    path = written(tmp_path, name, content)
    message = refusal_of(load_matrix, path)
    assert message.startswith(f"{path}: ")
    assert reason in message


@pytest.mark.parametrize(("array", "reason"), [
    (np.array([[0, 1j]]), "holds complex numbers"),
    (np.array([["a", "b"]]), "holds strings"),
    (np.array([[b"a", b"b"]]), "holds strings"),
    (np.array([["2020-01-01"]], dtype="M8[D]"), "the type '<M8[D]'"),
    (np.zeros((1, 1), dtype=[("a", "i4")]), "with one plain type"),
    (np.array([0.5, 1]), "the shape '2,', wanted 2 axes"),
    (np.array(0.5), "the shape '', wanted 2 axes"),
    (np.zeros((1, 2, 3)), "the shape '1, 2, 3', wanted 2 axes"),
    (np.zeros((0, 3)), "holds 0 rows and 3 columns"),
    (np.zeros((1, 0)), "holds 1 rows and 0 columns"),
    (np.array([[0, np.nan]]), "row 1, column 2 is nan"),
    (np.array([[0], [-np.inf]], dtype="f2"), "row 2, column 1 is -inf"),
])
def test_a_numpy_array_that_is_no_matrix_of_numbers_is_refused(tmp_path, array, reason):
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", array)
    for name in ("a.npy", "a.npz"):
        assert reason in refusal_of(load_matrix, tmp_path / name)


class Trap:
    """An object that leaves a trace when it is unpickled."""

    trace: Path

    def __reduce__(self):
        return Path.touch, (self.trace,)


def test_nothing_is_unpickled(tmp_path):
    Trap.trace = tmp_path / "trace"
    np.save(tmp_path / "a.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
    assert "holds Python objects" in refusal_of(load_matrix, tmp_path / "a.npy")
    assert not Trap.trace.exists()
    np.load(tmp_path / "a.npy", allow_pickle=True)  # the trap does work
    assert Trap.trace.exists()


def test_an_array_that_is_cut_short_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((2, 3)))
    path = written(tmp_path, "a.npy", (tmp_path / "a.npy").read_bytes()[:-1])
    assert refusal_of(load_matrix, path) == f"{path}: is cut short after 47 bytes of data, wanted 48"


def test_an_archive_holds_exactly_one_array(tmp_path):
    np.savez(tmp_path / "two.npz", np.eye(2), np.eye(2))
    message = refusal_of(load_matrix, tmp_path / "two.npz")
    assert message == f"{tmp_path}/two.npz: holds 2 arrays, wanted exactly one"
    zipfile.ZipFile(tmp_path / "none.npz", "w").close()
    assert "holds 0 arrays, wanted exactly one" in refusal_of(load_matrix, tmp_path / "none.npz")
    scipy.sparse.save_npz(tmp_path / "sparse.npz", scipy.sparse.csr_matrix(np.eye(2)))
    assert "write a sparse one with scipy.io.mmwrite" in refusal_of(load_matrix, tmp_path / "sparse.npz")


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("iha_theory.matrices.MAX_FILE_BYTES", 1000)
    for size, reason in ((1000, "is no .npy file"), (1001, "unpacks to more than 1000 bytes, the limit")):
        with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a", bytes(size))
        assert reason in refusal_of(load_matrix, tmp_path / "a.npz")
    assert MAX_FILE_BYTES == 128 * 2**20


def test_an_archive_with_a_broken_member_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", np.eye(9))
    data = (tmp_path / "a.npz").read_bytes()
    path = written(tmp_path, "a.npz", data[:200] + b"?" + data[201:])
    assert "is no archive (\"Bad CRC-32" in refusal_of(load_matrix, path)
