"""Every device check and timing, for whoever has a GPU: ``python -m benchmarks.gpu_check [cuda|cpu] [minutes]``.

Printed as it goes: the constructions in every dtype against their bounds; the layer on the device against the layer on
the CPU in float64, outputs and gradients, for every mask, window, padding and dtype, and decoding against the full pass;
times and peak memory beside the floors of ``benchmarks.layer`` and ``benchmarks.decoding``; and then the same with
FlexAttention, which compiles for each case. What is left when the minutes (default 4) are over is dropped, and counted.
Ends with exit code 1 if a check fails or was dropped, 2 if there is no such device. On the CPU it runs the checks and
small timings, without FlexAttention, which has no backward pass there.
"""

from __future__ import annotations

import copy
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch._dynamo
import torch.nn.functional as F

from benchmarks.decoding import floor as decoding_floor
from benchmarks.decoding import step
from benchmarks.layer import Size
from constructions.device_instances import device_cases
from iha_theory.torch_device import DTYPES, device_of, outcome
from iha_theory.torch_kernels import Kernel
from iha_theory.torch_layer import InterleavedHeadAttention

MASKS = (("none", None), ("flat", None), ("token", None), ("flat", 64), ("token", 64))


def constructions(device: str) -> Iterator[tuple[str, bool]]:
    """Theorems 3 and 4 in every dtype, float32 with TF32 on and off."""
    for dtype in DTYPES:
        for tf32 in (False, True) if dtype == "float32" and device != "cpu" else (False,):
            for case in device_cases("tf32" if tf32 else dtype):
                found = outcome(case, device, dtype, tf32=tf32)
                yield f"{found.case:<58} {found.dtype:<14} {found.error:9.2e} <= {found.bound:9.2e}", found.is_within


def _run(layer: InterleavedHeadAttention, x: torch.Tensor, padding: torch.Tensor | None) -> list[torch.Tensor]:
    x = x.detach().clone().requires_grad_()
    y, _ = layer(x, key_padding_mask=padding, need_weights=False)
    return [y, *torch.autograd.grad(y.square().sum(), [x, *layer.parameters()])]


#: The dtypes of each kernel, and how far off the largest entry of an output or a gradient may be. float64 shows that the
#: formula is the same; the others go through other kernels. The rounding of bfloat16 is near one percent, and a window
#: that is off by one moves some gradient by a fifth.
BOUNDS = {"auto": ((torch.float64, 1e-10), (torch.float32, 1e-3), (torch.bfloat16, 0.1)),
          "chunked": ((torch.float64, 1e-10), (torch.bfloat16, 0.1)), "flex": ((torch.float32, 1e-3),)}


def agreement(device: str, kernels: tuple[Kernel, ...]) -> Iterator[tuple[str, bool]]:
    """The layer on the device against the layer on the CPU in float64, for every mask, window, padding and dtype."""
    for kernel in kernels:
        for mask, window in MASKS:
            for padded in (False, True):
                for dtype, bound in BOUNDS[kernel] if kernel != "flex" or mask != "none" else ():
                    off = _off(device, mask, window, padded, kernel, dtype)
                    what = f"mask={mask}, window={window}, padded={padded}, kernel={kernel}"
                    yield f"{what:<58} {str(dtype)[6:]:<14} {off:9.2e} <= {bound:9.2e}", off <= bound


def _off(device: str, mask: str, window: int | None, padded: bool, kernel: Kernel, dtype: torch.dtype) -> float:
    """How far outputs and gradients are from the CPU's float64, as a share of the largest entry of each."""
    torch.manual_seed(0)
    layer = InterleavedHeadAttention(64, 4, 3, num_kv_heads=2, mask=mask, window=window, batch_first=True,
                                     init="uniform", dtype=dtype)
    x = torch.randn(2, 300, 64, dtype=dtype)
    padding = torch.zeros(2, 300, dtype=torch.bool)
    padding[0, 250:] = padding[1, :5] = True
    wanted = _run(copy.deepcopy(layer).double(), x.double(), padding if padded else None)
    layer.to(device).kernel = kernel
    got = _run(layer, x.to(device), padding.to(device) if padded else None)
    return max(float((a.detach().cpu().double() - b.detach()).abs().max() / b.detach().abs().max().clamp(1e-9))
               for a, b in zip(got, wanted, strict=True))


def generation(device: str) -> Iterator[tuple[str, bool]]:
    """Decoding token by token with a cache against the full pass, both on the device, in float64."""
    for mask, window in MASKS[1:]:
        torch.manual_seed(0)
        layer = InterleavedHeadAttention(64, 4, 3, num_kv_heads=2, mask=mask, window=window, rope="token",
                                         batch_first=True, init="uniform", dtype=torch.float64, device=device).eval()
        x = torch.randn(2, 150, 64, dtype=torch.float64, device=device)
        cache = layer.new_cache(2, 150)
        with torch.no_grad():
            whole, _ = layer(x, need_weights=False)
            pieces = [layer(token, need_weights=False, cache=cache)[0] for token in x.split(1, 1)]
        off = float((torch.cat(pieces, 1) - whole).abs().max() / whole.abs().max())
        what = f"token by token, mask={mask}, window={window}"
        yield f"{what:<58} {'float64':<14} {off:9.2e} <= {1e-12:9.2e}", off <= 1e-12


def _seconds(work: Callable[[], object], device: str) -> float:
    if device != "cpu":
        torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def _peak(work: Callable[[], object], device: str) -> float:
    """MiB of one call on the device; 0 on the CPU, where ``benchmarks.layer`` measures it."""
    if device == "cpu":
        return 0.0
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    _seconds(work, device)
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def _line(what: str, work: Callable[[], object], base: Callable[[], object], device: str) -> str:
    """One timing beside its floor."""
    for _ in range(3):
        work()
        base()
    pairs = [(_seconds(work, device), _seconds(base, device)) for _ in range(7)]
    mine, floor = (statistics.median(times) * 1e3 for times in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    return f"{what:<66} {mine:8.2f} {floor:8.2f} {ratio:6.2f} {_peak(work, device):7.0f} {_peak(base, device):7.0f}"


def timings(device: str, kernel: Kernel) -> Iterator[str]:
    """Forward and backward, bfloat16, beside four projections and the fused kernel on ready-made virtual tokens."""
    yield f"{'(batch, N, D, H, P), what, kernel':<66} {'ms':>8} {'floor':>8} {'ratio':>6} {'MiB':>7} {'floor':>7}"
    sizes = (Size(4, 2048, 1024, 16, 2), Size(1, 8192, 1024, 16, 2), Size(4, 1024, 1024, 16, 8))
    if device == "cpu":
        sizes = (Size(1, 128, 64, 4, 2),)
    for size in sizes[:1] if kernel == "flex" else sizes:
        for mask, window in MASKS[1:] if kernel == "flex" else MASKS:
            for padded in (False, True):
                work = _pass(size, mask, window, padded, kernel, device)
                what = f"{tuple(size)}, {mask}, window={window}, padded={padded}, {kernel}"
                yield _line(what, work, _floor(size, mask != "none", device), device)


def _made(device: str) -> dict[str, Any]:
    return {"device": device, "dtype": torch.float32 if device == "cpu" else torch.bfloat16}


def _pass(size: Size, mask: str, window: int | None, padded: bool, kernel: Kernel, device: str) -> Callable[[], object]:
    made = _made(device)
    layer = InterleavedHeadAttention(size.d, size.h, size.p, mask=mask, window=window, batch_first=True, kernel=kernel,
                                     **made)
    x = torch.randn(size.batch, size.n, size.d, requires_grad=True, **made)
    direction, padding = torch.randn_like(x), None
    if padded:
        padding = torch.arange(size.n, device=device).expand(size.batch, -1) >= size.n - size.n // 8

    def work() -> None:
        layer(x, key_padding_mask=padding, need_weights=False)[0].backward(direction)
        layer.zero_grad(set_to_none=True)
        x.grad = None

    return work


def _floor(size: Size, is_causal: bool, device: str) -> Callable[[], object]:
    made = _made(device)
    projections = torch.nn.ModuleList(torch.nn.Linear(size.d, size.d, **made) for _ in range(4))
    x = torch.randn(size.batch, size.n, size.d, requires_grad=True, **made)
    q, k, v = (torch.randn(size.batch, size.h, size.n * size.p, size.d // size.h, requires_grad=True, **made)
               for _ in range(3))
    direction, virtual = torch.randn_like(x), torch.randn_like(q)

    def work() -> None:
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        torch.autograd.backward([*(projection(x) for projection in projections), attended],
                                [*(direction for _ in projections), virtual])
        projections.zero_grad(set_to_none=True)
        for t in (x, q, k, v):
            t.grad = None

    return work


def decoding(device: str) -> Iterator[str]:
    """One token with a cache, bfloat16, beside its projections and the fused kernel on ready-made mixed keys."""
    yield f"{'(batch, 1, D, H, P), what':<66} {'ms':>8} {'floor':>8} {'ratio':>6} {'MiB':>7} {'floor':>7}"
    sizes = (Size(1, 1, 64, 4, 2),) if device == "cpu" else (Size(1, 1, 1024, 16, 2), Size(16, 1, 1024, 16, 8))
    for size in sizes:
        for mask in ("token", "flat"):
            for cached in (128,) if device == "cpu" else (1024, 4096):
                yield _line(f"{tuple(size)}, {mask}, after {cached} tokens", step(size, cached, mask, **_made(device)),
                            decoding_floor(size, cached, **_made(device)), device)


Part = Iterator[tuple[str, bool]] | Iterator[str]


def parts(device: str) -> list[Part]:
    """Checks (a line, and whether it is as it should be) and timings (a line), in order."""
    found: list[Part] = [constructions(device), agreement(device, ("auto", "chunked")), generation(device),
                         timings(device, "auto"), decoding(device)]
    if device != "cpu":
        found += [agreement(device, ("flex",)), timings(device, "flex")]
    return found


def main(arguments: Sequence[str]) -> int:
    """Print everything; 1 if a check fails or something was dropped."""
    device = arguments[0] if arguments else "cuda"
    minutes = float(arguments[1]) if len(arguments) > 1 else 4.0
    deadline = time.monotonic() + 60 * minutes
    try:
        device_of(device)
    except ValueError as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return 2
    name = torch.cuda.get_device_name() if device != "cpu" else "CPU"
    print(f"torch {torch.__version__}, {name}")
    # FlexAttention compiles for each mask and size; beyond the limit torch would fall back to dense scores.
    torch._dynamo.config.recompile_limit = 64
    failed = dropped = 0
    for part in parts(device):
        while time.monotonic() < deadline:
            item = next(part, None)
            if item is None:
                break
            line, is_within = item if isinstance(item, tuple) else (item, None)
            failed += is_within is False
            print({True: "ok   ", False: "FAIL ", None: ""}[is_within] + line, flush=True)
        else:
            dropped += 1
    if dropped:
        print(f"{minutes:g} minutes are over: {dropped} parts were cut short or left out")
    print(f"{failed} checks failed")
    return 1 if failed or dropped else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
