"""Every device check and timing, for whoever has a GPU: ``python -m benchmarks.gpu_check [cuda|cpu] [minutes]``.

Three parts, each printed as it goes: the constructions in every dtype against their bounds; the layer on the device
against the layer on the CPU in float64, outputs and gradients, for every mask, window, padding and kernel; times and
peak memory beside the floor of ``benchmarks.layer``. Ends with exit code 1 if a check fails, and drops what is left of
the timings when the minutes (default 4) are over. On the CPU it runs the checks and small timings.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from constructions.device_instances import device_cases
from iha_theory.torch_device import DTYPES, device_of, outcome
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


def agreement(device: str) -> Iterator[tuple[str, bool]]:
    """The layer in float64 on the device and on the CPU: 1e-10 of the largest gradient, for every mask and kernel."""
    for mask, window in MASKS:
        for padded in (False, True):
            for kernel in ("auto", "chunked", "flex") if device != "cpu" else ("auto", "chunked"):
                if kernel == "flex" and mask == "none":
                    continue
                torch.manual_seed(0)
                # FlexAttention has no float64; float32 then, with its own rounding.
                dtype, bound = (torch.float32, 1e-3) if kernel == "flex" else (torch.float64, 1e-10)
                there = InterleavedHeadAttention(64, 4, 3, num_kv_heads=2, mask=mask, window=window, batch_first=True,
                                                 init="uniform", dtype=dtype)
                x = torch.randn(2, 300, 64, dtype=dtype)
                padding = torch.zeros(2, 300, dtype=torch.bool)
                padding[0, 250:] = padding[1, :5] = True
                wanted = _run(there.double(), x.double(), padding if padded else None)
                here = there.to(dtype).to(device)
                here.kernel = kernel
                got = _run(here, x.to(device), padding.to(device) if padded else None)
                off = max(float((a.detach().cpu().double() - b.detach()).abs().max() / b.detach().abs().max().clamp(1e-9))
                          for a, b in zip(got, wanted, strict=True))
                what = f"mask={mask}, window={window}, padded={padded}, kernel={kernel}"
                yield f"{what:<58} {str(dtype)[6:]:<14} {off:9.2e} <= {bound:9.2e}", off <= bound


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


def _trained(module: Callable[[], Any], direction: torch.Tensor) -> Callable[[], None]:
    return lambda: module().backward(direction)


def timings(device: str) -> Iterator[str]:
    """Forward and backward, bfloat16, beside four projections and the fused kernel on ready-made virtual tokens."""
    yield f"{'(batch, N, D, H, P), what, kernel':<66} {'ms':>8} {'floor':>8} {'ratio':>6} {'MiB':>7} {'floor':>7}"
    dtype = torch.bfloat16 if device != "cpu" else torch.float32
    sizes = ((4, 2048, 1024, 16, 2), (1, 8192, 1024, 16, 2), (4, 1024, 1024, 16, 8)) if device != "cpu" else (
        (1, 128, 64, 4, 2),)
    for batch, n, d, h, p in sizes:
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        projections = torch.nn.ModuleList(torch.nn.Linear(d, d, **made) for _ in range(4))
        x = torch.randn(batch, n, d, requires_grad=True, **made)
        q, k, v = (torch.randn(batch, h, n * p, d // h, requires_grad=True, **made) for _ in range(3))
        direction, virtual = torch.randn_like(x), torch.randn_like(q)

        def floor(is_causal: bool, x=x, q=q, k=k, v=v, direction=direction, virtual=virtual,
                  projections=projections) -> None:
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
            torch.autograd.backward([*(projection(x) for projection in projections), attended],
                                    [*(direction for _ in projections), virtual])

        for mask, window in MASKS:
            for padded in (False, True):
                for kernel in ("auto", "flex") if device != "cpu" and mask != "none" else ("auto",):
                    layer = InterleavedHeadAttention(d, h, p, mask=mask, window=window, batch_first=True,
                                                     kernel=kernel, **made)
                    padding = torch.arange(n, device=device).expand(batch, n) >= n - n // 8 if padded else None
                    work = _trained(lambda layer=layer, x=x, padding=padding: layer(
                        x, key_padding_mask=padding, need_weights=False)[0], direction)
                    base_work = partial(floor, mask != "none")
                    for _ in range(3):
                        work()
                        base_work()
                    pairs = [(_seconds(work, device), _seconds(base_work, device)) for _ in range(7)]
                    mine, base = (statistics.median(times) * 1e3 for times in zip(*pairs, strict=True))
                    ratio = statistics.median(a / b for a, b in pairs)
                    what = f"{(batch, n, d, h, p)}, {mask}, window={window}, padded={padded}, {kernel}"
                    yield (f"{what:<66} {mine:8.2f} {base:8.2f} {ratio:6.2f} {_peak(work, device):7.0f} "
                           f"{_peak(base_work, device):7.0f}")


def main() -> int:
    """Print everything; 1 if a check fails."""
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    deadline = time.monotonic() + 60 * (float(sys.argv[2]) if len(sys.argv) > 2 else 4)
    try:
        device_of(device)
    except ValueError as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return 2
    name = torch.cuda.get_device_name() if device != "cpu" else "CPU"
    print(f"torch {torch.__version__}, {name}")
    failed = 0
    for checks in (constructions(device), agreement(device)):
        for line, is_within in checks:
            failed += not is_within
            print(f"{'ok  ' if is_within else 'FAIL'} {line}", flush=True)
    for line in timings(device):
        print(line, flush=True)
        if time.monotonic() > deadline:
            print("... the minutes are over; the rest of the timings was dropped")
            break
    print(f"{failed} checks failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
