"""The layer against the transcription of Algorithm 1, over several scalars, and what it refuses."""

import itertools
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iha_theory import AXES, IHA, forward, hard, linear, multi_head, pseudo_heads, softmax
from iha_theory.layer import MIXING
from iha_theory.scalars import INTEGERS, RATIONALS
from tests import reference

# Distinct primes, so that a transposed axis cannot pass.
SIZES = {"source": 2, "head": 3, "out": 5, "pseudo": 7, "model": 11, "key": 13, "value": 17}


def shapes(sizes):
    return {name: tuple(sizes[axis] for axis in axes.split()) for name, axes in AXES.items()}


def random_weights(sizes, seed, low=-2, high=3):
    source = np.random.default_rng(seed)
    return {name: source.integers(low, high, shape).astype(object) for name, shape in shapes(sizes).items()}


def listed(weights):
    return {name: RATIONALS.array(array).tolist() for name, array in weights.items()}


def as_layer(weights, domain=RATIONALS):
    return IHA(**{name: domain.array(array) for name, array in weights.items()})


small = st.fixed_dictionaries({axis: st.integers(1, 3) for axis in SIZES})


@given(small, st.integers(1, 3), st.integers(0, 10**6))
def test_linear_attention_is_the_transcription(sizes, tokens, seed):
    weights = random_weights(sizes, seed)
    x = RATIONALS.array(np.random.default_rng(seed + 1).integers(-3, 4, (tokens, sizes["model"])).astype(object))
    expected = reference.iha(listed(weights), x.tolist(), reference.identity_rows)
    assert forward(as_layer(weights), x, linear).tolist() == expected


@given(small, st.integers(1, 3), st.integers(0, 10**6))
def test_hard_attention_is_the_transcription(sizes, tokens, seed):
    weights = random_weights(sizes, seed)
    x = RATIONALS.array(np.random.default_rng(seed + 1).integers(-1, 2, (tokens, sizes["model"])).astype(object))
    expected = reference.iha(listed(weights), x.tolist(), lambda s: reference.hard_rows(s, flint.fmpq(1)))
    assert forward(as_layer(weights), x, hard).tolist() == expected


@given(small, st.integers(1, 3), st.integers(0, 10**6))
def test_softmax_with_a_rational_base_is_the_transcription(sizes, tokens, seed):
    weights = random_weights(sizes, seed, -1, 2)
    x = RATIONALS.array(np.random.default_rng(seed + 1).integers(-1, 2, (tokens, sizes["model"])).astype(object))

    def act(scores):
        return reference.power_rows([[s.p for s in row] for row in scores], flint.fmpq(3, 2))

    expected = reference.iha(listed(weights), x.tolist(), act)
    assert forward(as_layer(weights), x, softmax(base=Fraction(3, 2))).tolist() == expected


@given(small, st.integers(1, 3), st.integers(0, 10**6))
def test_softmax_in_floats_is_the_transcription_with_the_scale_of_the_algorithm(sizes, tokens, seed):
    source = np.random.default_rng(seed)
    weights = {name: source.normal(size=shape) for name, shape in shapes(sizes).items()}
    x = source.normal(size=(tokens, sizes["model"]))
    beta = reference.scale(sizes["key"])
    expected = reference.iha({n: a.tolist() for n, a in weights.items()}, x.tolist(),
                             lambda s: reference.softmax_rows(s, beta))
    # Two evaluations of the same sums: both are within this many units of rounding of the exact value.
    magnitude = forward(IHA(**{n: np.abs(a) for n, a in weights.items()}), np.abs(x), softmax(0.0))
    steps = 400 * (1 + np.abs(x).sum() ** 2 * max(np.abs(weights["w_q"]).sum() * np.abs(weights["w_k"]).sum(), 1))
    limit = steps * np.finfo(float).eps * (tokens * sizes["pseudo"] * magnitude.max() + 1)
    assert np.abs(forward(IHA(**weights), x, softmax()) - np.array(expected)).max() <= limit


def test_the_index_order_of_every_weight():
    weights = random_weights(SIZES, 5)
    x = RATIONALS.array(np.random.default_rng(6).integers(-3, 4, (19, SIZES["model"])).astype(object))
    layer = as_layer(weights)
    assert layer.sizes == SIZES
    q, k, v = pseudo_heads(layer, x)
    assert q.shape == k.shape == (3, 7, 19, 13)
    assert v.shape == (3, 7, 19, 17)
    assert forward(layer, x, linear).tolist() == reference.iha(listed(weights), x.tolist(), reference.identity_rows)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 10**6))
def test_multi_head_attention_is_the_layer_with_identity_mixing(heads, tokens, seed):
    sizes = {"source": heads, "model": 2, "key": 3, "value": 2, "head": heads, "out": heads, "pseudo": 1}
    weights = random_weights(sizes, seed)
    identity = np.eye(heads, dtype=int)[:, :, None].astype(object)
    weights |= dict.fromkeys(MIXING, identity)
    x = RATIONALS.array(np.random.default_rng(seed + 1).integers(-3, 4, (tokens, 2)).astype(object))
    plain = multi_head(*(RATIONALS.array(weights[name]) for name in ("w_q", "w_k", "w_v")))
    expected = reference.mha(listed({n: weights[n] for n in ("w_q", "w_k", "w_v")}), x.tolist(),
                             reference.identity_rows)
    assert forward(plain, x, linear).tolist() == expected
    assert forward(as_layer(weights), x, linear).tolist() == expected
    assert not plain.is_mixed
    assert plain.sizes == as_layer(weights).sizes


@given(st.permutations(range(3)), st.integers(0, 10**6))
def test_renaming_the_base_heads_changes_nothing(order, seed):
    weights = random_weights(dict.fromkeys(SIZES, 3), seed)
    x = RATIONALS.array(np.random.default_rng(seed).integers(-3, 4, (2, 3)).astype(object))
    renamed = {name: array if name == "collapse" else array[list(order)] for name, array in weights.items()}
    assert (forward(as_layer(renamed), x, linear) == forward(as_layer(weights), x, linear)).all()


@given(st.permutations(range(3)), st.integers(0, 10**6))
def test_renaming_the_heads_and_the_pseudo_heads_changes_nothing(order, seed):
    weights = random_weights(dict.fromkeys(SIZES, 3), seed)
    x = RATIONALS.array(np.random.default_rng(seed).integers(-2, 3, (2, 3)).astype(object))
    order = list(order)
    heads = {name: weights[name][:, order] if name in MIXING else weights[name] for name in weights}
    pseudos = {name: weights[name][:, :, order] if name in MIXING else weights[name] for name in weights}
    for attention in (linear, hard):
        expected = forward(as_layer(weights), x, attention)
        assert (forward(as_layer(heads), x, attention) == expected).all()
        assert (forward(as_layer(pseudos), x, attention) == expected).all()


@given(st.sampled_from(["w_q", "w_k", "w_v", *MIXING]), st.integers(-3, 3), st.integers(0, 10**6))
def test_linear_attention_scales_with_every_weight(name, factor, seed):
    weights = random_weights(dict.fromkeys(SIZES, 2), seed)
    x = RATIONALS.array(np.random.default_rng(seed).integers(-3, 4, (2, 2)).astype(object))
    scaled = forward(as_layer(weights | {name: weights[name] * factor}), x, linear)
    assert (scaled == forward(as_layer(weights), x, linear) * flint.fmpq(factor)).all()


@given(st.permutations(range(4)), st.integers(0, 10**6))
def test_without_a_mask_the_tokens_can_be_permuted(order, seed):
    weights = random_weights(dict.fromkeys(SIZES, 2), seed)
    x = RATIONALS.array(np.random.default_rng(seed).integers(-2, 3, (4, 2)).astype(object))
    for attention in (linear, hard, softmax(base=2)):
        output = forward(as_layer(weights), x, attention)
        assert (forward(as_layer(weights), x[list(order)], attention) == output[list(order)]).all()


def test_a_wrong_size_is_named_with_its_axis_and_the_other_weight():
    weights = random_weights(dict.fromkeys(SIZES, 2), 0)
    weights["collapse"] = np.ones((2, 2, 3), dtype=int).astype(object)
    with pytest.raises(ValueError, match=r"IHA: collapse has pseudo=3, but pseudo=2 in alpha_q"):
        as_layer(weights)


def test_a_wrong_number_of_axes_is_named():
    with pytest.raises(ValueError, match=r"IHA: w_k has 2 axes of shape \(2, 2\), but wants 'source model key'"):
        multi_head(np.ones((2, 2, 2)), np.ones((2, 2)), np.ones((2, 2, 2)))


def test_half_of_the_mixing_is_refused():
    weights = random_weights(dict.fromkeys(SIZES, 2), 0)
    for absent in itertools.chain.from_iterable(itertools.combinations(MIXING, size) for size in (1, 2, 3)):
        with pytest.raises(ValueError, match=f"IHA: {', '.join(absent)} missing"):
            as_layer({name: array for name, array in weights.items() if name not in absent})


def test_an_input_of_the_wrong_width_is_refused():
    layer = multi_head(*(INTEGERS.array(np.ones((1, 3, 1), dtype=int)) for _ in range(3)))
    with pytest.raises(ValueError, match=r"the input has shape \(2, 4\), but wants \(token, model=3\)"):
        forward(layer, INTEGERS.array(np.ones((2, 4), dtype=int)), linear)
    with pytest.raises(ValueError, match="wants"):
        forward(layer, INTEGERS.array([1, 2, 3]), linear)
