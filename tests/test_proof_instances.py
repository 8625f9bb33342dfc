"""The proofs and the Python speak of one layer: what Coq printed for small layers, against the arrays, entry by entry.

Coq need not be there: what it printed is committed (proofs/instances.txt) and bound by a digest to the proofs.
"""

import json
import re
import shutil
from fractions import Fraction

import numpy as np
import pytest

from constructions import polynomial_filter, polynomial_filter_mha, tiled_cover
from constructions.proved import FOLDER
from constructions.theorem_3_polynomial_filter import SIGNED
from iha_theory.attention import flat_causal, hard, linear, softmax, token_causal
from iha_theory.layer import AXES, IHA, MIXING, forward
from iha_theory.proofs import accepted, printed_instances
from iha_theory.scalars import RATIONALS, object_array


def read_instances(text):
    """Instance to array name to array of fractions (``sizes``: the words of that line)."""
    found = {}
    for line in text.splitlines():
        instance, name, values = line.split(" ", 2)
        found.setdefault(instance, {})[name] = values.split() if name == "sizes" else entries(values)
    return found


def entries(values):
    nested = json.loads(re.sub(r"-?\d+(?:/\d+)?", lambda number: f'"{number.group()}"', values))
    array = object_array(nested)
    for index, value in np.ndenumerate(array):
        array[index] = Fraction(value)
    return array


def fractions(array):
    result = np.empty(array.shape, dtype=object)
    for index, value in np.ndenumerate(array):
        result[index] = Fraction(int(value.p), int(value.q))
    return result


def scatter(s, shape):
    """Entries without structure, as Instances.v defines them: no exchange of two indices leaves them as they are."""
    array = np.empty(shape, dtype=object)
    for i, j, k in np.ndindex(*shape):
        array[i, j, k] = (i * 17 + j * 23 + k * 29 + (i + 1) * (j + 2) * (k + 3) * 7 + s * 13) % 31 % 3 - 1
    return RATIONALS.array(array)


def scattered(d, dk, dv):
    """H = 2, P = 3 and N = 4 tokens of d columns: the weights and the input."""
    alphas = [scatter(s, (2, 2, 3)) for s in (0, 2, 1, 4)]
    weights = IHA(scatter(0, (2, d, dk)), scatter(1, (2, d, dk)), scatter(2, (2, d, dv)), *alphas)
    return weights, scatter(3, (3, 4, d))[2]


def base2():
    """H = P = 2, N = D = 3: scores that are integers of both signs."""
    weights = IHA(
        RATIONALS.array([[[1], [0], [1]], [[0], [2], [-1]]]), RATIONALS.array([[[0], [1], [-1]], [[1], [-1], [0]]]),
        scatter(2, (2, 3, 2)), RATIONALS.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]]),
        RATIONALS.array([[[1, 0], [0, 0]], [[0, 1], [1, 1]]]), scatter(1, (2, 2, 2)),
        RATIONALS.array([[[0, 1], [-1, 0]], [[1, 0], [0, 2]]]))
    return weights, RATIONALS.array([[1, 0, 0], [0, 1, 0], [1, 0, 1]])


def filters(build, a, x):
    a, x = RATIONALS.array(a), RATIONALS.array(x)
    return build(a), np.concatenate([x, RATIONALS.array(np.eye(len(a), dtype=int))], axis=1)


A2, X2 = [[1, 2], [3, 4]], [[5], [7]]
A3, X3 = [[0, 1, 2], [-1, 1, 0], [1, 0, -1]], [[2, -1], [3, 1], [0, 5]]
TURN = [[1, 1], [-1, 0]]
MASKS = {"none": None, "token": token_causal, "flat": flat_causal}
ATTENTIONS = {
    "linear": lambda mask: lambda q, k, v: linear(q, k, v, mask=mask),
    "hard": lambda mask: lambda q, k, v: hard(q, k, v, mask=mask),
    "base2": lambda mask: softmax(base=2, mask=mask),
}
#: What the Python side builds for each instance: weights and input.
LAYERS = {
    "theorem3_k4": lambda: filters(lambda a: polynomial_filter(a, 4, 1), A2, X2),
    "theorem3_k7": lambda: filters(lambda a: polynomial_filter(a, 7, 2), A3, X3),
    "tiled_h4_p2_l2": lambda: filters(lambda a: polynomial_filter(a, 8, 1, cover=tiled_cover(4, 2, 2)), TURN, X2),
    "tiled_h5_p3_l5": lambda: filters(lambda a: polynomial_filter(a, 25, 1, cover=tiled_cover(5, 5, 3)), TURN, X2),
    "signed_h3_p2_l3": lambda: filters(lambda a: polynomial_filter(a, 9, 1, cover=SIGNED), TURN, X2),
    "mha_k3": lambda: filters(lambda a: polynomial_filter_mha(a, 3, 2), A3, X3),
    **{f"linear_{mask}": lambda: scattered(5, 6, 7) for mask in MASKS},
    **{f"hard_{mask}": lambda: scattered(3, 1, 2) for mask in MASKS},
    **{f"base2_{mask}": base2 for mask in MASKS},
}
#: Two instances hold weights that nothing reads: Coq's tiled filter keeps a value there where the Python has 0.
UNREAD = ("tiled_h4_p2_l2", "tiled_h5_p3_l5")


def arrays(weights):
    """The weights by name, identity mixing spelt out, as fractions."""
    found = {name: fractions(array) for name, array in weights.fields().items()}
    if not weights.is_mixed:
        identity = fractions(RATIONALS.array(np.eye(weights.sizes["source"], dtype=int)))[:, :, None]
        found |= dict.fromkeys(MIXING, identity)
    return found


def read_only(weights):
    """The weights with 0 where no output reads them: keys and values of a head of which R reads no pseudo-query but
    zero, and base keys that no pseudo-key mixes."""
    found = {name: array.copy() for name, array in weights.items()}
    read = (found["collapse"] != 0).any(axis=0) & (found["alpha_q"] != 0).any(axis=0)
    for name in ("alpha_k", "alpha_v"):
        found[name][:, ~read.any(axis=1)] = Fraction(0)
    found["w_k"][(found["alpha_k"] == 0).all(axis=(1, 2))] = Fraction(0)
    return found


def first_difference(left, right):
    """None, or where two arrays part, with both values; a difference of shape is one, too."""
    if left.shape != right.shape:
        return left.shape, right.shape
    return next(((index, str(left[index]), str(right[index])) for index in np.ndindex(left.shape)
                 if left[index] != right[index]), None)


def differences(printed, weights, x, attention):
    """Array name to where the printed instance and the Python layer part; empty when they are the same."""
    sizes, own = weights.sizes, arrays(weights)
    output = fractions(forward(weights, x, attention))
    heads = output.reshape(len(x), sizes["out"], sizes["value"]).transpose(1, 0, 2)
    pairs = {name: (printed[name], own[name]) for name in AXES}
    pairs |= {"x": (printed["x"], fractions(x)), "output": (printed["output"], heads)}
    if "columns" in printed:
        width = printed["bank"].shape[1]
        pairs |= {"columns": (printed["columns"], output[:, :width]), "bank": (printed["bank"], output[:, :width])}
    letters = {"H": "out", "P": "pseudo", "D": "model", "dk": "key", "dv": "value"}
    words = [f"{letter}={sizes[axis]}" for letter, axis in letters.items()]
    words.insert(2, f"N={len(x)}")
    if printed["sizes"][:6] != words:
        return {"sizes": (printed["sizes"][:6], words)}
    return {name: found for name, pair in pairs.items() if (found := first_difference(*pair))}


def attention_of(printed):
    attention, mask = printed["sizes"][6:]
    return ATTENTIONS[attention](MASKS[mask])


def compared(printed, name):
    weights, x = LAYERS[name]()
    shown = printed | read_only({key: printed[key] for key in AXES}) if name in UNREAD else printed
    return differences(shown, weights, x, attention_of(printed))


@pytest.fixture(scope="module")
def printed():
    return read_instances(printed_instances(FOLDER))


def test_every_printed_instance_is_compared(printed):
    assert set(printed) == set(LAYERS)


@pytest.mark.parametrize("name", LAYERS)
def test_the_layer_of_the_proofs_is_the_layer_of_the_toolkit(printed, name):
    assert compared(printed[name], name) == {}


@pytest.mark.parametrize("name", LAYERS)
def test_the_printed_weights_give_the_printed_output(printed, name):
    weights = IHA(**{key: RATIONALS.array(printed[name][key]) for key in AXES})
    assert differences(printed[name], weights, RATIONALS.array(printed[name]["x"]), attention_of(printed[name])) == {}


@pytest.mark.parametrize("name", LAYERS)
def test_unread_entries_are_set_aside_only_where_there_are_any(printed, name):
    found = {key: printed[name][key] for key in AXES}
    parts = {key for key, kept in read_only(found).items() if first_difference(found[key], kept)}
    assert parts == {UNREAD[0]: {"w_k", "alpha_k", "alpha_v"}, UNREAD[1]: {"alpha_k", "alpha_v"}}.get(name, set())


@pytest.mark.parametrize("name", LAYERS)
def test_a_wrong_entry_in_any_printed_array_is_seen(printed, name):
    for array in set(printed[name]) - {"sizes"}:
        wrong = printed[name][array].copy()
        wrong[(0,) * wrong.ndim] += 1
        assert array in compared(printed[name] | {array: wrong}, name)


@pytest.mark.parametrize("name", ["linear_none", "linear_token", "linear_flat"])
@pytest.mark.parametrize("array", ["w_q", "w_k", "w_v", *MIXING, "output"])
def test_any_exchange_of_two_indices_is_seen(printed, name, array):
    for axes in ((1, 0, 2), (0, 2, 1), (2, 1, 0)):
        assert array in compared(printed[name] | {array: printed[name][array].transpose(axes)}, name)


@pytest.mark.parametrize(("name", "as_if"), [
    ("linear_flat", "token"), ("linear_token", "none"), ("hard_flat", "token"), ("base2_token", "flat")])
def test_another_mask_is_seen(printed, name, as_if):
    assert "output" in compared(printed[name] | {"sizes": [*printed[name]["sizes"][:7], as_if]}, name)


def test_other_sizes_are_seen(printed):
    found = printed["linear_none"]
    assert found["sizes"][1] == "P=3"
    other = found | {"sizes": [found["sizes"][0], "P=2", *found["sizes"][2:]]}
    assert compared(other, "linear_none").keys() == {"sizes"}


def test_printed_text_that_was_edited_is_refused(tmp_path):
    for path in [*FOLDER.glob("*.v"), FOLDER / "accepted.json", FOLDER / "instances.txt"]:
        shutil.copy(path, tmp_path)
    text = printed_instances(tmp_path)
    assert "theorem3_k4 columns [[5,19,105,563],[7,43,229,1231]]\n" in text
    (tmp_path / "instances.txt").write_text(text.replace("1231", "1232"))
    with pytest.raises(ValueError, match="not what the checker printed; run make proofs"):
        printed_instances(tmp_path)
    (tmp_path / "instances.txt").unlink()
    with pytest.raises(ValueError, match="not what the checker printed"):
        printed_instances(tmp_path)
    (tmp_path / "Layer.v").write_text("(* edited *)")
    accepted.cache_clear()
    with pytest.raises(ValueError, match="not as the checker accepted it"):
        printed_instances(tmp_path)
