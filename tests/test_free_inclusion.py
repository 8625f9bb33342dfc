"""The points that equal multi-head attention and are no copies of it."""

import numpy as np
import pytest

from constructions.inclusions import free_inclusion, inclusion
from constructions.score_functions import drawn
from iha_theory.scalars import RATIONALS
from tests.inclusion_layers import by_hand, by_token, everyone, flat, heads


def test_a_free_point_equals_multi_head_attention_and_is_no_copy():
    mha, seen = heads(), []
    arrays, _ = drawn(RATIONALS, {"x": (4, 3), "queries": (2, 2, 2), "deviations": (2, 2, 2)}, seed=3)
    layer = free_inclusion(mha, 3, queries=arrays["queries"], deviations=arrays["deviations"])
    for sees, alone in ((everyone, everyone), (by_token, by_token), (flat(3), by_token)):
        seen.append(by_hand(layer, arrays["x"], sees) == by_hand(inclusion(mha, 1), arrays["x"], alone))
    assert seen == [True, True, True]
    values = layer.fields()["alpha_v"]
    np.testing.assert_array_equal(values.sum(axis=2), [[3, 0], [0, 3]])
    assert (values[..., 0] != values[..., 1]).any()
    assert (values[..., 1] != values[..., 2]).any()


def test_the_free_point_without_deviations_is_the_inclusion():
    mha, copies = heads(), inclusion(heads(), 3).fields()
    free = free_inclusion(mha, 3, queries=copies["alpha_q"][..., 1:], deviations=copies["alpha_q"][..., 1:] * 0)
    for name, array in free.fields().items():
        np.testing.assert_array_equal(array, copies[name])


@pytest.mark.parametrize("name", ["queries", "deviations"])
def test_the_free_point_names_the_array_of_the_wrong_shape(name):
    right = RATIONALS.array(np.ones((2, 2, 2), dtype=int))
    arrays = {"queries": right, "deviations": right} | {name: right[:, :, :1]}
    with pytest.raises(ValueError, match=rf"{name} has shape \(2, 2, 1\), but wants \(source=2, head=2, pseudo=2\)"):
        free_inclusion(heads(), 3, **arrays)
