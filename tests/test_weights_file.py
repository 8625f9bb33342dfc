"""Weights on disk: what is saved comes back, files are written whole, and what is no weights file is refused."""

import json
import os
import struct

import numpy as np
import pytest
from safetensors.numpy import save

from constructions import cyclic_shifts, polynomial_filter
from iha_theory import RATIONALS, load_graph, load_weights, save_weights
from iha_theory.weights_file import FORMAT, check_writable, write_whole


def test_what_is_saved_comes_back(tmp_path):
    path = tmp_path / "w.safetensors"
    for weights in (cyclic_shifts(5), polynomial_filter(load_graph("florentine").adjacency, 4, 2)):
        save_weights(path, weights, {"construction": "some", "attention": "hard"})
        found, about = load_weights(path)
        assert about == {"format": FORMAT, "construction": "some", "attention": "hard"}
        assert found.sizes == weights.sizes
        for name, array in weights.fields().items():
            assert (RATIONALS.array(found.fields()[name]) == RATIONALS.array(array)).all()


def test_a_number_that_is_no_double_is_refused_by_its_place(tmp_path):
    weights = polynomial_filter(RATIONALS.array([[3]]), 64, 1)
    with pytest.raises(ValueError, match=r"w_q\[\d+, 1, 0\] = \d+ is no float64; take fewer powers or tokens"):
        save_weights(tmp_path / "w.safetensors", weights, {})
    thirds = polynomial_filter(RATIONALS.array([[1]]) / 3, 4, 1)
    with pytest.raises(ValueError, match="is no float64"):
        save_weights(tmp_path / "w.safetensors", thirds, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("change", "says"), [
    (lambda t, m: ({k: v for k, v in t.items() if k != "w_k"}, m), "w_k missing"),
    (lambda t, m: (t | {"w_o": t["w_q"]}, m), "unknown weights w_o"),
    (lambda t, m: (t, m | {"format": "other"}), "format 'other', wanted"),
    (lambda t, m: (t | {"w_q": t["w_q"].astype(np.float32)}, m), "w_q is not finite float64"),
    (lambda t, m: (t | {"w_q": t["w_q"] + np.nan}, m), "w_q is not finite float64"),
    (lambda t, m: (t | {"w_q": t["w_q"][:, :1]}, m), "IHA: w_k has model="),
    (lambda t, m: ({k: v for k, v in t.items() if k != "collapse"}, m), "IHA: collapse missing"),
])
def test_a_file_that_does_not_fit_is_refused(tmp_path, change, says):
    path = tmp_path / "w.safetensors"
    save_weights(path, cyclic_shifts(3), {})
    weights, about = load_weights(path)
    tensors, about = change(weights.fields(), about)
    path.write_bytes(save(tensors, about))
    with pytest.raises(ValueError, match=says) as caught:
        load_weights(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("content", [b"", b"1234567", struct.pack("<Q", 10**12) + b"{}", b"\x80" * 100,
                                     struct.pack("<Q", 2) + b"{}"])
def test_bytes_that_are_no_weights_are_refused(tmp_path, content):
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="give a file written by build"):
        load_weights(path)


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "out.json"
    write_whole(path, b"first")
    assert path.read_bytes() == b"first"
    assert path.stat().st_mode & 0o777 == 0o666 & ~os.umask(os.umask(0o022) or 0o022)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, b"second")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_cannot_be_written_are_named(tmp_path):
    with pytest.raises(ValueError, match="is a folder; name a file in it"):
        check_writable(tmp_path)
    with pytest.raises(ValueError, match="there is no folder"):
        check_writable(tmp_path / "nowhere" / "file")


def test_the_metadata_is_plain_json(tmp_path):
    path = tmp_path / "w.safetensors"
    save_weights(path, cyclic_shifts(2), {"attention": "hard"})
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
    assert header["__metadata__"]["attention"] == "hard"
