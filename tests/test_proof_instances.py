"""The proofs and the Python speak of one layer: what Coq printed for small layers, against the arrays, entry by entry.

Coq need not be there: what it printed is committed (proofs/instances.txt) and bound by a digest to the proofs.
"""

import json
import re
import shutil
from fractions import Fraction

import numpy as np
import pytest

from constructions import (
    cyclic_shifts,
    cyclic_shifts_mha,
    inclusion,
    polynomial_filter,
    polynomial_filter_mha,
    separating_layer,
    tiled_cover,
)
from constructions.filter_routings import SIGNED
from constructions.proved import FOLDER
from constructions.repeated_tokens import repeated
from constructions.shifts import with_positions
from iha_theory.attention import flat_causal, hard, linear, softmax, token_causal
from iha_theory.layer import AXES, IHA, MIXING, forward, multi_head
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


def shifts(build, n):
    """A layer of Theorem 4 for n tokens 2, 3, 6, 11, ..., all distinct."""
    return build(n), with_positions(RATIONALS.array([[i * i + 2] for i in range(n)]))


def base_heads():
    """The multi-head attention that the layers of Theorem 2 are built from."""
    weights, x = base2()
    return multi_head(weights.w_q, weights.w_k, weights.w_v), x


def copies(p, pick):
    mha, x = base_heads()
    return inclusion(mha, p, pick=pick), x


def separating(p=2, *, as_printed=False, same=False):
    mha, x = repeated_heads() if same else base_heads()
    return separating_layer(mha, p, as_printed=as_printed), x


def repeated_heads():
    return base_heads()[0], repeated(RATIONALS.array([2, 1, -1]), 3)


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
    "theorem4_n4_h2": lambda: shifts(cyclic_shifts, 4),
    "theorem4_n3_h2": lambda: shifts(cyclic_shifts, 3),
    "theorem4_n5_h3": lambda: shifts(cyclic_shifts, 5),
    "theorem4_mha_n3": lambda: shifts(cyclic_shifts_mha, 3),
    "theorem2_mha_none": base_heads,
    "theorem2_mha_token": base_heads,
    "theorem2_mha_repeated": repeated_heads,
    "copies_p2_first_none": lambda: copies(2, "first"),
    "copies_p2_last_token": lambda: copies(2, "last"),
    "copies_p2_last_flat": lambda: copies(2, "last"),
    "copies_p2_first_flat": lambda: copies(2, "first"),
    "copies_p3_mean_none": lambda: copies(3, "mean"),
    "copies_p3_second_token": lambda: copies(3, 1),
    "copies_p3_last_flat": lambda: copies(3, "last"),
    "copies_p3_first_flat": lambda: copies(3, "first"),
    "printed_none": lambda: separating(as_printed=True),
    "printed_repeated": lambda: separating(as_printed=True, same=True),
    "corrected_none": separating,
    "corrected_token": separating,
    "corrected_flat": separating,
    "corrected_repeated": lambda: separating(same=True),
    "zero_mixing_repeated": lambda: separating(3, same=True),
    "zero_mixing_token": lambda: separating(3),
}


def arrays(weights):
    """The weights by name, identity mixing spelt out, as fractions."""
    found = {name: fractions(array) for name, array in weights.fields().items()}
    if not weights.is_mixed:
        identity = fractions(RATIONALS.array(np.eye(weights.sizes["source"], dtype=int)))[:, :, None]
        found |= dict.fromkeys(MIXING, identity)
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
    return differences(printed, weights, x, attention_of(printed))


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


@pytest.mark.parametrize(("name", "tokens"), [("theorem4_n4_h2", 4), ("theorem4_n3_h2", 3), ("theorem4_n5_h3", 5),
                                              ("theorem4_mha_n3", 3)])
def test_the_printed_shifts_are_the_shifts_by_their_definition(printed, name, tokens):
    output = printed[name]["output"]
    width = output.shape[2]
    assert tokens <= output.shape[0] * width
    for h, i, b in np.ndindex(*output.shape):
        assert output[h, i, b] == ((i + h * width + b) % tokens) ** 2 + 2


@pytest.mark.parametrize(("name", "mha", "same"), [
    ("copies_p2_first_none", "none", True), ("copies_p2_last_token", "token", True),
    ("copies_p2_last_flat", "token", True), ("copies_p2_first_flat", "token", False),
    ("copies_p3_mean_none", "none", True), ("copies_p3_second_token", "token", True),
    ("copies_p3_last_flat", "token", True), ("copies_p3_first_flat", "token", False),
    ("printed_repeated", "repeated", True), ("corrected_repeated", "repeated", False),
    ("zero_mixing_repeated", "repeated", False),
])
def test_the_printed_layers_of_theorem_2_are_mha_where_it_says_so(printed, name, mha, same):
    found = first_difference(printed[name]["output"], printed[f"theorem2_mha_{mha}"]["output"])
    assert (found is None) == same


@pytest.mark.parametrize(("name", "factors"), [
    ("corrected_repeated", (Fraction(15, 17), Fraction(63, 65))),
    ("zero_mixing_repeated", (Fraction(15, 21), Fraction(63, 73))),
])
def test_the_printed_factors_are_those_of_the_scores_2_and_3(printed, name, factors):
    """With e(s) = 2^s: (e(s) - e(-s)) / (e(s) + e(-s)), and with e(0) = 1 added to the denominator."""
    values = printed["theorem2_mha_repeated"]["output"]
    assert first_difference(printed[name]["output"], values * np.array(factors, dtype=object)[:, None, None]) is None


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
