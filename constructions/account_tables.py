"""What ``iha-theory counts`` prints: parameters, heads and crossovers as tables, from the closed forms."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from math import isqrt, prod

from constructions.accounts import BY_NAME
from constructions.closed_forms import (
    Routing,
    cheapest_routing,
    cpm3_iha,
    cpm3_mha,
    filter_iha,
    filter_mha,
    least_tokens,
    paper_routing,
    shifts_iha,
    shifts_mha,
    tiled_routing,
)
from constructions.language_model import LEAST, MOST, READINGS, LanguageModel
from iha_theory.book import AccountTable
from iha_theory.count import ceil_sqrt, parameters
from iha_theory.layer import AXES, MIXING
from iha_theory.tables import Cell, Table, decimal

Sizes = tuple[int, ...]

#: Entries that ``--built`` allocates at most, for one row.
MOST_BUILT = 4_000_000


def _routings(k: int, pseudo_heads: Sizes | None) -> Iterable[tuple[str, Routing]]:
    if pseudo_heads is None:
        return (("P=H", paper_routing(k)), ("tiled", tiled_routing(k)))
    return tuple((f"P={p}", cheapest_routing(k, p)) for p in pseudo_heads)


def _buildable(what: str, entries: int) -> None:
    if entries > MOST_BUILT:
        raise ValueError(f"{what}: --built would make {entries} entries, the limit is {MOST_BUILT}; take "
                         "smaller sizes or leave --built out")


def filter_table(k: Sizes = tuple(range(1, 11)), d: Sizes = (1,), n: Sizes = (34,),
                 pseudo_heads: Sizes | None = None,
                 built: bool = False) -> Table:
    """Parameters of the bank of k powers, with IHA and with k heads of multi-head attention."""
    if built and pseudo_heads is not None:
        raise ValueError("--built builds the P = H and the tiled routing; leave --pseudo-heads out")
    rows: list[tuple[Cell, ...]] = []
    for powers, features, tokens in product(k, d, n):
        mha = filter_mha(tokens, features, powers)
        for name, routing in _routings(powers, pseudo_heads):
            iha = filter_iha(tokens, features, *routing)
            row: tuple[Cell, ...] = (powers, features, tokens, name, *routing, iha, mha,
                                     decimal(Fraction(mha, iha)), iha < mha)
            if built:
                _buildable(f"k={powers}, d={features}, N={tokens}", max(iha, mha))
                account = BY_NAME["filter-iha" if name == "P=H" else "filter-tiled"]
                row += tuple(each.built(tokens, features, powers) for each in (account,
                                                                               BY_NAME["filter-mha"]))
            rows.append(row)
    return Table("Parameters of the bank [X, AX, ..., A^(k-1) X]",
                 ("k", "d", "N", "routing", "H", "L", "P", "IHA", "MHA", "MHA/IHA", "smaller",
                  *(("IHA built", "MHA built") if built else ())), tuple(rows),
                 ("MHA has k heads. L: column blocks of the value space; tiled: the fewest pseudo-heads for "
                  "H heads.",
                  *(("built: the entries of weights that were made, counted.",) if built else ())))


def crossover_table(k: Sizes = tuple(range(1, 17)), d: Sizes = (1, 8),
                    pseudo_heads: Sizes | None = None) -> Table:
    """The least N from which on IHA has fewer parameters."""
    rows: list[tuple[Cell, ...]] = []
    for powers, features in product(k, d):
        for name, routing in _routings(powers, pseudo_heads):
            least = least_tokens(powers, features, routing)
            rows.append((powers, features, name, *routing, powers - routing.heads,
                         routing.heads * routing.blocks - powers,
                         least, powers * features + 1,
                         None if least is None else least <= powers * features + 1))
    return Table("From which N on IHA has fewer parameters than k heads of multi-head attention",
                 ("k", "d", "routing", "H", "L", "P", "a", "b", "least N", "kd + 1", "from kd + 1 on"),
                 tuple(rows),
                 ("IHA is smaller iff (N + d)(2aN - bd) > 4H^2 P, with a = k - H and b = HL - k. No least N: "
                  "never.",))


def cpm3_table(n: Sizes = tuple(range(1, 13)), built: bool = False) -> Table:
    """Parameters of CPM-3, beside the paper's bounds."""
    rows: list[tuple[Cell, ...]] = []
    for tokens in n:
        heads = ceil_sqrt(tokens)
        iha, mha = cpm3_iha(tokens, heads), cpm3_mha(tokens)
        row: tuple[Cell, ...] = (
            tokens, heads, shifts_iha(tokens, heads), shifts_mha(tokens), iha, mha,
            shifts_iha(tokens, heads) < shifts_mha(tokens), iha < mha, isqrt(37**2 * tokens**5) + tokens**3,
            4 * tokens**3)
        if built:
            _buildable(f"N={tokens}", max(iha, mha))
            row += (BY_NAME["cpm3-total-iha"].built(tokens), BY_NAME["cpm3-total-mha"].built(tokens))
        rows.append(row)
    return Table("Parameters of CPM-3",
                 ("N", "H", "attention IHA", "attention MHA", "total IHA", "total MHA", "attention smaller",
                  "total smaller",
                  "printed bound IHA", "printed bound MHA", *(("IHA built", "MHA built") if built else ())),
                 tuple(rows),
                 ("The MLP has all N^2 ordered pairs. Printed bounds: above, 37 N^2.5 + N^3 (rounded down); "
                  "below, 4 N^3, which the total misses from N = 5 on.",))


def layer_table(heads: Sizes = (8,), pseudo_heads: Sizes = (8,), head_dim: Sizes = (64,),
                width: Sizes | None = None) -> Table:
    """Parameters of one IHA layer, weight by weight."""
    rows: list[tuple[Cell, ...]] = []
    for h, p, key in product(heads, pseudo_heads, head_dim):
        for model in width or (h * key,):
            sizes = {"source": h, "head": h, "out": h, "pseudo": p, "model": model, "key": key, "value": key}
            whole, base = parameters(sizes), parameters(sizes, mixed=False)
            for name, axes in AXES.items():
                entries = prod(sizes[axis] for axis in axes.split())
                rows.append((h, p, model, key, name, axes, entries, decimal(Fraction(100 * entries, whole))))
            for name, entries in (("Q", base), ("mixing", whole - base), ("all", whole)):
                rows.append((h, p, model, key, name, "base weights" if name == "Q" else f"{', '.join(MIXING)}"
                             if name == "mixing" else "Q + 4 H^2 P", entries,
                             decimal(Fraction(100 * entries, whole))))
    return Table("Parameters of an IHA layer, without an output projection",
                 ("H", "P", "width", "head-dim", "weight", "axes", "parameters", "percent"), tuple(rows))


def model_table(heads: Sizes = (20,), head_dim: Sizes = (128,), pseudo_heads: Sizes = (2,)) -> Table:
    """Parameters of the language model of §5.1, for each reading of its sizes, and what mixing adds."""
    rows: list[tuple[Cell, ...]] = []
    for h, key, p in product(heads, head_dim, pseudo_heads):
        for reading in READINGS:
            model = LanguageModel(heads=h, key=key, matrices=reading.matrices, embeddings=reading.embeddings,
                                  pseudo=p)
            parts = model.parts
            rows.append((h, key, model.matrices, model.embeddings, parts["embeddings"], parts["attention"],
                         parts["FFN"],
                         parts["norms"], model.total, LEAST <= model.total <= MOST, p, model.mixing,
                         model.layers * model.mixing, decimal(Fraction(100 * model.layers * model.mixing,
                                                                       model.total))))
    return Table("Parameters of the language model: 26 layers, FFN 10240, vocabulary 128256",
                 ("H", "head-dim", "FFN matrices", "embeddings", "of embeddings", "of attention", "of FFN",
                  "of norms", "total",
                  "2.4B", "P", "mixing/layer", "mixing, 26 layers", "percent"), tuple(rows),
                 ("embeddings: shared by input and output, separate, or none (not counted). No biases. 2.4B: "
                  "rounds to it.",
                  "Mixing comes on top of the total; with IHA in the local layers alone (4:1) it is that of "
                  "20 or 21 layers."))


TABLES = {
    "filter": AccountTable("the bank of k powers", ("k", "d", "n", "pseudo_heads", "built"), filter_table),
    "crossover": AccountTable("the least N", ("k", "d", "pseudo_heads"), crossover_table),
    "cpm3": AccountTable("CPM-3", ("n", "built"), cpm3_table),
    "layer": AccountTable("one layer", ("heads", "pseudo_heads", "head_dim", "width"), layer_table),
    "model": AccountTable("the language model", ("heads", "head_dim", "pseudo_heads"), model_table),
}
