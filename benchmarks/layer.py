"""The torch layer's speed and memory: each measurement beside its floor, interleaved, medians of the ratios.

The floor of a layer at (batch, N, D, H, P) is the four projections of N tokens, and the fused kernel on ready-made
tensors of N P virtual tokens with the same heads: with no mask, or with its causal flag. Nothing here passes or fails.
Run as ``python -m benchmarks.layer [--quick]``.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from iha_theory.torch_kernels import Kernel
from iha_theory.torch_layer import InterleavedHeadAttention


class Size(NamedTuple):
    """Batch, tokens, features, heads, pseudo-heads."""

    batch: int
    n: int
    d: int
    h: int
    p: int


SIZES = (Size(1, 256, 256, 8, 8), Size(2, 512, 256, 8, 2), Size(1, 1024, 512, 8, 2))
Work = Callable[[], object]


def layer(size: Size, **options: Any) -> InterleavedHeadAttention:
    """The layer of a size, batch first."""
    torch.manual_seed(0)
    return InterleavedHeadAttention(size.d, size.h, size.p, batch_first=True, **options)


def call(size: Size, mask: str, *, window: int | None = None, padded: bool = False, frozen: bool = False,
         kernel: Kernel = "auto", backward: bool = True) -> Work:
    """One call of the layer, with its backward pass or under no_grad."""
    module = layer(size, mask=mask, window=window, kernel=kernel)
    if frozen:
        module.freeze_mixing()
    x = torch.randn(size.batch, size.n, size.d, requires_grad=backward)
    padding = None
    if padded:
        padding = torch.zeros(size.batch, size.n, dtype=torch.bool)
        padding[:, -size.n // 8 :] = True
    grad = torch.randn(size.batch, size.n, size.d)

    def work() -> None:
        with torch.set_grad_enabled(backward):
            out, _ = module(x, key_padding_mask=padding, need_weights=False)
        if backward:
            out.backward(grad)
            module.zero_grad(set_to_none=True)
            x.grad = None

    return work


def floor(size: Size, *, is_causal: bool, backward: bool = True) -> Work:
    """Four projections of N tokens, and the fused kernel on ready-made tensors of N P virtual tokens."""
    torch.manual_seed(0)
    projections = torch.nn.ModuleList(torch.nn.Linear(size.d, size.d) for _ in range(4))
    x, y = (torch.randn(size.batch, size.n, size.d, requires_grad=backward) for _ in range(2))
    q, k, v = (torch.randn(size.batch, size.h, size.n * size.p, size.d // size.h, requires_grad=backward)
               for _ in range(3))
    grad, virtual = torch.randn_like(x), torch.randn_like(q)

    def work() -> None:
        with torch.set_grad_enabled(backward):
            outs = [*(projection(x) for projection in projections[:3]), projections[3](y)]
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        if backward:
            torch.autograd.backward([*outs, attended], [*(grad for _ in outs), virtual])
            projections.zero_grad(set_to_none=True)
            for t in (x, y, q, k, v):
                t.grad = None

    return work


def seconds(work: Work) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def compared(work: Work, base: Work, rounds: int) -> tuple[float, float, float]:
    """(median seconds, median seconds of the base, median of the ratios), interleaved."""
    for _ in range(2):
        work()
        base()
    pairs = [(seconds(work), seconds(base)) for _ in range(rounds)]
    return (statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs),
            statistics.median(a / b for a, b in pairs))


def decoding(size: Size, cached: int, *, mask: str = "token", kernel: Kernel = "auto") -> Work:
    """One token after ``cached`` others; the cache is set back after every step."""
    module = layer(size, mask=mask, kernel=kernel).eval().requires_grad_(False)
    cache = module.new_cache(size.batch, cached + 1)
    cache.k.normal_()
    cache.v.normal_()
    x = torch.randn(size.batch, 1, size.d)

    def work() -> None:
        cache.tokens = cache.kept = cached
        with torch.no_grad():
            module(x, need_weights=False, cache=cache)

    return work


def decoding_floor(size: Size, cached: int) -> Work:
    """The four projections of a token, and the fused kernel for P queries against the mixed keys of all tokens."""
    torch.manual_seed(0)
    projections = torch.nn.ModuleList(torch.nn.Linear(size.d, size.d) for _ in range(4)).requires_grad_(False)
    x = torch.randn(size.batch, 1, size.d)
    q = torch.randn(size.batch, size.h, size.p, size.d // size.h)
    k, v = (torch.randn(size.batch, size.h, (cached + 1) * size.p, size.d // size.h) for _ in range(2))

    def work() -> None:
        with torch.no_grad():
            for projection in projections:
                projection(x)
            F.scaled_dot_product_attention(q, k, v)

    return work


def peak(kind: str) -> float:
    """MiB that the call ``kind``, an expression of this module, adds to a fresh process that has warmed up."""
    code = ("import resource\nfrom benchmarks.layer import *\n"
            "tiny = Size(1, 8, 16, 2, 2)\n"
            "for warm in (floor(tiny, is_causal=True), call(tiny, 'token', padded=True), call(tiny, 'none')): warm()\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            f"({kind})()\n"
            "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


Kind = tuple[str, dict[str, Any], bool]


def kinds(n: int) -> tuple[Kind, ...]:
    """What is measured: a name, the options of :func:`call`, whether its floor is causal."""
    return (("no mask", {"mask": "none"}, False), ("flat", {"mask": "flat"}, True), ("token", {"mask": "token"}, True),
            (f"flat, window {n // 8}", {"mask": "flat", "window": n // 8}, True),
            (f"token, window {n // 2}", {"mask": "token", "window": n // 2}, True),
            ("flat, right-padded", {"mask": "flat", "padded": True}, True),
            ("token, right-padded", {"mask": "token", "padded": True}, True))


def times(rounds: int) -> Iterator[str]:
    """Each kind of layer beside its floor."""
    yield f"{'(batch, N, D, H, P), what':<66} {'ms':>8} {'floor':>8} {'ratio':>6}"
    for size in SIZES:
        for name, options, causal in kinds(size.n):
            for backward in (False, True):
                mine, base, ratio = compared(call(size, backward=backward, **options),
                                             floor(size, is_causal=causal, backward=backward), rounds)
                what = f"{tuple(size)}, {name}, {'forward and backward' if backward else 'forward'}"
                yield f"{what:<66} {mine * 1e3:8.1f} {base * 1e3:8.1f} {ratio:6.2f}"
    for size in (Size(1, 1, 256, 8, 8), Size(1, 1, 512, 8, 2), Size(4, 1, 512, 8, 2)):
        for mask in ("token", "flat"):
            for cached in (1024, 4096):
                mine, base, ratio = compared(decoding(size, cached, mask=mask), decoding_floor(size, cached), 10 * rounds)
                what = f"{tuple(size)}, {mask}, one token after {cached}"
                yield f"{what:<66} {mine * 1e3:8.2f} {base * 1e3:8.2f} {ratio:6.2f}"


def windows(rounds: int) -> Iterator[str]:
    """Time at a fixed window of 64 tokens, as N doubles."""
    yield f"{'flat, window 64, D=256, H=8, P=2, forward and backward: N':<66} {'ms':>8} {'per token, us':>14}"
    for n in (512, 1024, 2048, 4096):
        work = call(Size(1, n, 256, 8, 2), "flat", window=64)
        work()
        taken = statistics.median(seconds(work) for _ in range(max(3, rounds // 4)))
        yield f"{n:<66} {taken * 1e3:8.1f} {taken / n * 1e6:14.2f}"


def memory(lengths: tuple[int, ...]) -> Iterator[str]:
    """Peak memory of one forward and backward pass beside the floor's, and its slope in N P."""
    yield f"{'peak memory, D=256, H=8, P=2: N P, what':<66} {'MiB':>8} {'floor':>8} {'ratio':>6} {'KiB/virtual':>12}"
    for virtual in lengths:
        n = virtual // 2
        base = {causal: peak(f"floor(Size(1, {n}, 256, 8, 2), is_causal={causal})") for causal in (False, True)}
        for name, options, causal in kinds(512):
            mine = peak(f"call(Size(1, {n}, 256, 8, 2), **{options})")
            yield (f"{f'{virtual}, {name}':<66} {mine:8.0f} {base[causal]:8.0f} {mine / base[causal]:6.2f} "
                   f"{mine * 1024 / virtual:12.2f}")


def main() -> None:
    """Print the tables."""
    quick = "--quick" in sys.argv
    rounds = 5 if quick else 31
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, float32, "
          f"medians of {rounds} interleaved rounds")
    lengths = (2048, 4096) if quick else (4096, 8192, 16384, 32768)
    for line in chain(times(rounds), windows(rounds), memory(lengths)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
