"""FlexAttention's block masks: block by block against the mask itself, and one compiled run."""

import shutil
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._dynamo.testing import CompileCounterWithBackend

from iha_theory import torch_flex
from iha_theory.torch_layer import InterleavedHeadAttention
from iha_theory.torch_masks import Sight, picture
from tests.torch_reference import close


@settings(max_examples=60, deadline=None, derandomize=True)
@given(n=st.integers(1, 20), offset=st.integers(0, 9), pseudo=st.integers(1, 4), window=st.none() | st.integers(1, 30),
       data=st.data())
def test_blocks_are_seen_in_part_or_whole_as_the_mask_says(n, offset, pseudo, window, data):
    limits = tuple(data.draw(st.lists(st.integers(0, pseudo - 1), min_size=1, max_size=pseudo)))
    sight = Sight(n, n + offset, pseudo, len(limits), limits, window)
    dense = picture(n, offset, pseudo, limits, window, torch.float32, torch.device("cpu")) == 0
    rows, columns = dense.shape
    block = 4
    original, torch_flex._BLOCK = torch_flex._BLOCK, block
    try:
        mask: Any = torch_flex._block_mask(sight, lambda *_: torch.tensor(True), rows, columns, torch.device("cpu"))
    finally:
        torch_flex._BLOCK = original
    partly = torch.zeros(-(-rows // block), -(-columns // block), dtype=torch.bool)
    wholly = partly.clone()
    for i in range(partly.shape[0]):
        partly[i, mask.kv_indices[0, 0, i, : mask.kv_num_blocks[0, 0, i]].long()] = True
        wholly[i, mask.full_kv_indices[0, 0, i, : mask.full_kv_num_blocks[0, 0, i]].long()] = True
    assert not (partly & wholly).any()
    for i in range(partly.shape[0]):
        for j in range(partly.shape[1]):
            seen = dense[i * block : (i + 1) * block, j * block : (j + 1) * block]
            assert not seen.any() or partly[i, j] or wholly[i, j]
            assert not wholly[i, j] or (seen.all() and seen.numel() == block**2)
    # No more blocks than a row of blocks can touch: its keys, and one block at each end.
    reach = columns if window is None else (window + -(-block // len(limits)) + 1) * pseudo
    assert (partly | wholly).sum(1).max() <= -(-reach // block) + 2


@pytest.mark.skipif(not any(map(shutil.which, ("g++", "clang++", "c++"))), reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")  # the code generator's, not ours
def test_a_compiled_run_is_the_chunked_one():
    torch.manual_seed(0)
    layer = InterleavedHeadAttention(32, 2, 3, num_kv_heads=1, mask="flat", window=30, batch_first=True, init="uniform",
                                     kernel="flex")
    x, padding = torch.randn(2, 60, 32), torch.zeros(2, 60, dtype=torch.bool)
    padding[0, 50:] = padding[1, :3] = True
    with torch.no_grad():
        got, _ = layer(x, key_padding_mask=padding, need_weights=False)
        layer.kernel = "chunked"
        assert close(got, layer(x, key_padding_mask=padding, need_weights=False)[0], 1e-5)


@pytest.mark.skipif(not any(map(shutil.which, ("g++", "clang++", "c++"))), reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")
def test_other_windows_and_lengths_are_no_other_kernels():
    counted, x = CompileCounterWithBackend("inductor"), torch.randn(1, 30, 8)
    torch.compiler.reset()
    torch_flex._compiled.cache_clear()
    compiled = torch.compile
    torch.compile = partial(compiled, backend=counted)
    try:
        for window, n in [(None, 30), *((w, 30) for w in range(1, 6)), *((4, n) for n in range(11, 20))]:
            layer = InterleavedHeadAttention(8, 2, 2, mask="token", window=window, kernel="flex", batch_first=True)
            with torch.no_grad():
                got, _ = layer(x[:, :n], need_weights=False)
                layer.kernel = "chunked"
                assert close(got, layer(x[:, :n], need_weights=False)[0], 1e-5)
    finally:
        torch.compile = compiled
        torch_flex._compiled.cache_clear()
        torch.compiler.reset()
    # One for the first length, one for all others. After eight torch would give up, and say no more than a warning.
    assert 1 <= counted.frame_count <= 2


def test_what_it_does_not_serve_is_refused():
    x = torch.randn(1, 5, 6)
    refused: tuple[tuple[dict[str, Any], dict[str, Any], str], ...] = (
        ({"mask": "token"}, {}, "no backward pass on the CPU"), ({"mask": "none"}, {}, "no causal mask"),
        ({"mask": "token", "dropout": 0.1}, {}, "dropout"),
        ({"mask": "token"}, {"attn_mask": torch.zeros(5, 5)}, "attn_mask"))
    for options, call, match in refused:
        layer = InterleavedHeadAttention(6, 2, 3, batch_first=True, kernel="flex", **options)
        with pytest.raises(ValueError, match=f"kernel: got 'flex'.*{match}"):
            layer(x, **call)
