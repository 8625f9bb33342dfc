"""Models of Hugging Face transformers with interleaved heads: made from a configuration, held to the numpy formula."""


import pytest
import torch

from iha_theory.torch_hugging_face import interleave_heads
from tests.hugging_face_models import (
    ALL,
    CAUSAL,
    LEFT,
    MASKS,
    PADDINGS,
    WORDS,
    by_hand,
    interleaved,
    logits,
    mixings,
    model_of,
    randomise,
    words,
)
from tests.torch_reference import close


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", CAUSAL)
def test_at_the_mha_initialisation_logits_are_equal(kind, mask, padding):
    model, x, real = model_of(kind), words(), PADDINGS[padding]
    seen = (ALL if real is None else real).bool()
    wanted = logits(model, x, real)
    names = interleave_heads(model, 4 if kind == "gpt2" else None, mask=mask)
    got = logits(model, x, real)
    assert len(names) == len(mixings(model)) == 2
    assert got.isfinite().all()
    assert close(got[seen], wanted[seen], 1e-10)
    assert not close(logits(randomise(model), x, real)[seen], wanted[seen], 1e-3)


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", CAUSAL)
def test_a_layer_with_random_mixing_is_the_formula(kind, mask, padding):
    model, x, real = interleaved(kind, mask), words(), PADDINGS[padding]
    seen = (ALL if real is None else real).bool()
    compared = 0

    def compare(module, positional, named, output):
        nonlocal compared
        given = named["hidden_states"] if "hidden_states" in named else positional[0]
        for row in range(2):
            wanted = by_hand(model, module, given[row].numpy(), seen[row].numpy(), mask)
            assert close(output[0][row][seen[row]], wanted[seen[row].numpy()])
            compared += 1

    for module in model.modules():
        if hasattr(module, "mixing"):
            module.register_forward_hook(compare, with_kwargs=True)
    logits(model, x, real)
    assert compared == 4


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", CAUSAL)
def test_a_later_word_changes_nothing_before_it(kind, mask, padding):
    model, x, real = interleaved(kind, mask), words(), PADDINGS[padding]
    changed = x.clone()
    changed[:, 3] = changed[:, 3] % (WORDS - 1) + 1
    before, after = logits(model, x, real), logits(model, changed, real)
    assert torch.equal(before[:, :3], after[:, :3])
    assert not close(after[:, 4], before[:, 4], 1e-3)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", CAUSAL)
def test_padding_leaves_the_real_tokens_as_they_are(kind, mask):
    model, x = interleaved(kind, mask), words()
    wanted = logits(model, x[1:, 2:])
    # The models norm and turn in float32.
    assert close(logits(model, x, LEFT)[1:, 2:], wanted, 1e-5)
    shifted = torch.cat((x[:, 2:], x[:, :2]), 1)
    assert close(logits(model, shifted, LEFT.flip(1))[1:, :5], wanted, 1e-5)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", CAUSAL)
def test_sequences_that_are_packed_into_one_row_do_not_see_one_another(kind, mask):
    model, x = interleaved(kind, mask), words(1)
    packed = logits(model, x, position_ids=torch.tensor([[0, 1, 2, 0, 1, 2, 3]]))
    for part in (slice(3), slice(3, 7)):
        assert close(packed[:, part], logits(model, x[:, part]), 1e-5)
    if kind != "mistral":  # its window always comes as a mask
        with pytest.raises(ValueError, match="cu_seq_lens_q: got sequences side by side without a mask"):
            logits(model, x, cu_seq_lens_q=torch.tensor([0, 3, 7]))
