"""The tables behind ``iha-theory flops``: schedules, matching windows, key-value caches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import isqrt
from typing import Any

from iha_theory.flops import Flops, Layer, cache_entries, cached_tokens, flops
from iha_theory.schedules import Match, cost, match, parse_schedule
from iha_theory.tables import Cell, Table, decimal

Schedule = tuple[tuple[int, Layer], ...]
SHAPE = ("n", "pseudo_heads", "heads", "head_dim", "width", "groups", "mask", "schedule", "window")
_PER_PAIR = "One multiply-add is two FLOPs; the exponentials of softmax are not counted."


@dataclass(frozen=True)
class Setting:
    """N tokens, P pseudo-heads, a schedule and its baseline: as many global causal multi-head layers."""

    n: int
    p: int
    schedule: Schedule
    baseline: Schedule
    rounded: bool


def settings(n: tuple[int, ...] = (8192,), pseudo_heads: tuple[int, ...] = (2,), heads: int = 20,
             head_dim: int = 128,
             width: int | None = None, groups: int | None = None, mask: str = "token",
             schedule: str = "4:local-iha,1:global-mha", window: int | None = None) -> Iterator[Setting]:
    """Every setting that the options of ``flops`` ask for, N by N.

    Raises:
        ValueError: an unknown layer, groups that do not divide the heads, or a window beyond the tokens.
    """
    for tokens, p in product(n, pseudo_heads):
        unit = 1 if mask == "flat" else p
        default = max(1, tokens // (2 * p * unit))
        chosen = default if window is None else window

        def layer(kind: str, local: bool, p: int = p, chosen: int = chosen) -> Layer:
            return Layer(kind, heads, head_dim, head_dim, width or heads * head_dim,
                         p if kind == "iha" else 1,
                         _groups(heads, groups) if kind == "gqa" else None, mask,
                         (chosen if kind == "iha" or mask != "flat" else -(-chosen // p)) if local else None)

        layers = parse_schedule(schedule, layer)
        count = sum(count for count, _ in layers)
        rounded = window is None and bool(tokens % (2 * p * unit)) and any(item.window is not None for _,
                                                                           item in layers)
        yield Setting(tokens, p, layers, ((count, layer("mha", False)),), rounded)


def _groups(heads: int, groups: int | None) -> int:
    return groups or (1 if heads % 4 else 4)


def name_of(layer: Layer) -> str:
    """``local-iha`` and the like."""
    return f"{'global' if layer.window is None else 'local'}-{layer.kind}"


def _rounding(rows: Iterable[Setting]) -> tuple[str, ...]:
    places = [f"N={row.n}, P={row.p}" for row in rows if row.rounded]
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    return (f"N/(2P^2) is no whole window at {'; '.join(places[:3])}{more}; it was rounded down, to at least "
            "1.",) if places else ()


def schedule_table(**options: Any) -> Table:
    """Score pairs of one head and FLOPs of each layer of a schedule, of the whole and of its baseline."""
    asked = list(settings(**options))
    rows: list[tuple[Cell, ...]] = []
    for setting in asked:
        [(layers, mha)] = setting.baseline
        one = cost(((1, mha),), setting.n)
        for count, layer in setting.schedule:
            rows.append((setting.n, setting.p, name_of(layer), count, layer.window,
                         *_costs(count, [(1, layer)], setting.n, one)))
        rows.append((setting.n, setting.p, "schedule", layers, None, *_costs(1, setting.schedule, setting.n,
                                                                             layers * one)))
        rows.append((setting.n, setting.p, "baseline", layers, None, *_costs(1, setting.baseline, setting.n,
                                                                             layers * one)))
    return Table(
        "Score pairs and FLOPs",
        ("N", "P", "layer", "count", "window", "pairs", "projections", "mixing", "scores", "total",
         "pairs/MHA", "decimal"),
        tuple(rows),
        ("pairs are those of all heads. A layer's row is one layer; schedule and baseline (global causal "
         "multi-head attention) are whole.", _PER_PAIR, *_rounding(asked)))


def _costs(count: int, schedule: Iterable[tuple[int, Layer]], n: int, unit: int) -> tuple[Cell, ...]:
    layers = tuple(schedule)
    pairs = cost(layers, n)
    parts = [(each, flops(layer, n)) for each, layer in layers]
    total = Flops(*(sum(each * getattr(part, name) for each, part in parts)
                    for name in ("projections", "mixing", "scores")))
    share = Fraction(pairs, unit)
    return pairs, total.projections, total.mixing, total.scores, total.total, share, decimal(share)


def match_table(measure: str = "pairs", **options: Any) -> Table:
    """For each N and P the window whose cost comes nearest to the baseline, and what remains."""
    asked = list(settings(**options))
    rows: list[tuple[Cell, ...]] = []
    for setting in asked:
        goal = cost(setting.baseline, setting.n, measure)
        found: Match = match(setting.schedule, setting.n, goal, measure)
        local = next(layer for _, layer in setting.schedule if layer.window is not None)
        unit = setting.p if local.mask == "flat" and local.kind == "iha" else 1
        start = Fraction(cost(setting.schedule, setting.n, measure) - goal, goal)
        rows.append((setting.n, setting.p, local.window, decimal(start), found.window,
                     Fraction(found.window, unit),
                     found.cost, found.baseline, found.mismatch, decimal(found.mismatch), found.is_bracketed,
                     _estimate(setting)))
    return Table(
        f"The window that matches the baseline ({measure})",
        ("N", "P", "given window", "its mismatch", "window", "in tokens", "cost", "baseline", "mismatch",
         "decimal", "matched",
         "N(1-sqrt(1-1/P^2))"),
        tuple(rows),
        ("mismatch is (cost - baseline) / baseline at the nearest window; matched: no means that every "
         "window costs more, or every window less.",
         *([_PER_PAIR] if measure == "flops" else []), *_rounding(asked)))


def _estimate(setting: Setting) -> float | None:
    """N(1 - sqrt(1 - 1/P^2)) tokens; None unless IHA is local and the global layers are MHA."""
    if any(layer.kind != ("mha" if layer.window is None else "iha") for _, layer in setting.schedule):
        return None
    n, p = setting.n, setting.p
    return decimal(n - Fraction(isqrt(n**2 * (p**2 - 1) * 10**12 // p**2), 10**6))


def cache_table(bytes: int = 2, **options: Any) -> Table:
    """Keys and values that a decoder keeps: for each token, and after N tokens."""
    rows: list[tuple[Cell, ...]] = []
    for setting in settings(**options):
        [(layers, mha)] = setting.baseline
        gqa = replace(mha, kind="gqa", groups=_groups(mha.heads, options.get("groups")))
        mixes = (False, True) if any(layer.kind == "iha" for _, layer in setting.schedule) else (False,)
        for mixed in mixes:
            kept = 0
            for count, layer in setting.schedule:
                if mixed and layer.kind != "iha":
                    kept += count * _kept(layer, setting.n, False, bytes)
                    continue
                kept += count * _kept(layer, setting.n, mixed, bytes)
                rows.append(_cache_row(setting, f"{name_of(layer)}{_which(layer, mixed)}", count, layer,
                                       mixed, bytes))
            rows.append((setting.n, setting.p, f"schedule{_which(None, mixed) if len(mixes) > 1 else ''}",
                         layers, None,
                         None, None, kept))
        rows.append(_cache_row(setting, "baseline: global-mha", layers, mha, False, bytes))
        rows.append(_cache_row(setting, f"for comparison: global-gqa, {gqa.groups} groups", layers, gqa,
                               False, bytes))
    return Table(
        "Key-value cache", ("N", "P", "layer", "count", "numbers/token", "bytes/token", "tokens kept",
                            "bytes kept"),
        tuple(rows),
        (f"{bytes} bytes for a number. numbers and bytes for each token are those of one layer, bytes kept "
         "those of all count layers.",
         "base: the keys and values of the H heads, mixed again at every step; mixed: those of the H P "
         "pseudo-heads."))


def _which(layer: Layer | None, mixed: bool) -> str:
    return (", mixed" if mixed else ", base") if layer is None or layer.kind == "iha" else ""


def _kept(layer: Layer, n: int, mixed: bool, size: int) -> int:
    return size * cache_entries(layer, mixed=mixed) * cached_tokens(layer, n)


def _cache_row(setting: Setting, name: str, count: int, layer: Layer, mixed: bool,
               size: int) -> tuple[Cell, ...]:
    entries = cache_entries(layer, mixed=mixed)
    return (setting.n, setting.p, name, count, entries, size * entries, cached_tokens(layer, setting.n),
            count * _kept(layer, setting.n, mixed, size))


#: Name to the function and the options that it takes.
TABLES: dict[str, tuple[Callable[..., Table], tuple[str, ...]]] = {
    "schedule": (schedule_table, SHAPE),
    "match": (match_table, (*SHAPE, "measure")),
    "cache": (cache_table, (*SHAPE, "bytes")),
}
