# pyright: reportPrivateImportUsage=false
"""Two processes on one machine: data parallel and sharded gradients are those of a single process."""

import datetime
import os
import socket
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from iha_theory.torch_init import initialize
from iha_theory.torch_layer import InterleavedHeadAttention
from iha_theory.torch_mixing import Mixing
from iha_theory.torch_models import convert_model
from tests.torch_reference import DOUBLE, close

WORKERS = 2
LIMIT = 60.0

pytestmark = pytest.mark.skipif(not (dist.is_available() and dist.is_gloo_available()), reason="needs torch with gloo")


def model_of(dtype) -> nn.TransformerEncoder:
    """The same in every process: a converted encoder with random mixing."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, that norm_first keeps it off its fused path
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, norm_first=True), 2)
    convert_model(model, 3, init="noise")
    return model.to(dtype)


def gradients(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    model.zero_grad()
    model(x, is_causal=False).double().square().mean().backward()
    result = {}
    for name, parameter in model.named_parameters():
        grad = parameter.grad
        assert grad is not None, name
        result[name.removeprefix("module.")] = grad.full_tensor() if isinstance(grad, DTensor) else grad.clone()
    return result


def tokens(dtype) -> torch.Tensor:
    return torch.randn(2 * WORKERS, 5, 8, generator=torch.Generator().manual_seed(1)).to(dtype)


def data_parallel(model: nn.TransformerEncoder) -> nn.Module:
    return DistributedDataParallel(model)


def sharded(model: nn.TransformerEncoder) -> nn.Module:
    mesh, dtype = dist.init_device_mesh("cpu", (WORKERS,)), model.get_parameter("layers.0.linear1.weight").dtype
    for layer in model.layers:
        mixing = layer.get_submodule("self_attn.mixing")
        fully_shard(mixing, mesh=mesh)
        fully_shard(layer, mesh=mesh)
        assert isinstance(mixing, FSDPModule)
    fully_shard(model, mesh=mesh)
    for name, parameter in model.named_parameters():
        assert isinstance(parameter, DTensor), name
        assert torch.promote_types(dtype, torch.float32) == parameter.dtype if ".mixing." in name else (
            parameter.dtype == dtype), name
    return model


CASES = {"data parallel": (data_parallel, DOUBLE), "sharded": (sharded, DOUBLE),
         "sharded bfloat16": (sharded, torch.bfloat16)}


def worker(rank: int, folder: Path) -> None:
    """Write this process's gradients; they meet through a file, and talk over the loopback device alone."""
    os.environ["GLOO_SOCKET_IFNAME"] = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
    torch.set_num_threads(1)
    # As in the tests' own process, which the settings of pytest do not reach from here.
    warnings.simplefilter("error")
    wait = datetime.timedelta(seconds=LIMIT - 10)
    store = dist.FileStore(str(folder / "store"), WORKERS)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORKERS, timeout=wait)
    try:
        found = {case: gradients(wrap(model_of(dtype)), tokens(dtype).chunk(WORKERS)[rank])
                 for case, (wrap, dtype) in CASES.items()}
        torch.save(found, folder / f"{rank}.pt")
        dist.barrier()
    finally:
        dist.destroy_process_group()


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> list[dict[str, dict[str, torch.Tensor]]]:
    """The gradients of each process, by case; the processes are started once for all cases."""
    folder = tmp_path_factory.mktemp("gradients")
    context: Any = mp.start_processes(worker, (folder,), WORKERS, join=False, start_method="spawn")
    end = time.monotonic() + LIMIT
    try:
        while not context.join(timeout=1):
            assert time.monotonic() < end, f"the processes took more than {LIMIT} seconds"
    finally:
        for process in context.processes:
            if process.is_alive():
                process.kill()
            process.join()
    return [torch.load(folder / f"{rank}.pt") for rank in range(WORKERS)]


@pytest.mark.parametrize("case", ["data parallel", "sharded"])
def test_gradients_are_those_of_a_single_process(found, case):
    wanted = gradients(model_of(DOUBLE), tokens(DOUBLE))
    assert all(wanted[name].any() for name in wanted if ".mixing." in name)
    for got in found:
        assert got[case].keys() == wanted.keys()
        for name in wanted:
            assert close(got[case][name], wanted[name]), name


def test_a_bfloat16_model_shards_its_float32_mixing_apart(found):
    model = model_of(torch.bfloat16)
    assert {p.dtype for m in model.modules() if isinstance(m, Mixing) for p in m.parameters()} == {torch.float32}
    assert sum(isinstance(m, InterleavedHeadAttention) for m in model.modules()) == 2
    first, second = (gradients(model, x) for x in tokens(torch.bfloat16).chunk(WORKERS))
    for got in found:
        assert got["sharded bfloat16"].keys() == first.keys()
        for name, grad in got["sharded bfloat16"].items():
            assert grad.dtype == first[name].dtype, name
            # A sum of two, and half of it: rounded as here.
            assert torch.equal(grad, (first[name] + second[name]) / WORKERS), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("heads", "pseudo"), [(1, 1), (1, 3), (2, 1), (2, 3)])
def test_the_mixing_hands_out_contiguous_copies_that_are_no_views(heads, pseudo, dtype):
    mixing = Mixing(heads, heads, pseudo)
    initialize(mixing, "noise")
    kept = {p.untyped_storage().data_ptr() for p in mixing.parameters()}
    for frozen in (False, True):
        if frozen:
            mixing.freeze(same_for_all_heads=False)
        for matrix in mixing(dtype):
            assert matrix.is_contiguous()
            assert not matrix._is_view()
            assert matrix.untyped_storage().data_ptr() not in kept
