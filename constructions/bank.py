"""Shared brick of Theorems 1 and 3: a layer, its input [X, I] and the filter bank it should output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from constructions.blocks import (
    expansion_bound,
    generic_features,
    miss_probability,
    row_sum,
    symbols,
    unit_like,
)
from constructions.oracle import filter_bank
from iha_theory.attention import linear
from iha_theory.graphs import Graph, load_graph
from iha_theory.layer import IHA, MIXING, forward
from iha_theory.residues import Residues
from iha_theory.scalars import FLOATS, POLYNOMIALS, RATIONALS, RESIDUES, Domain, as_fraction, to_float

_TINY = Fraction(1, 2**250)
Build = Callable[[np.ndarray], IHA]


@dataclass(frozen=True)
class Bank:
    """A layer, its input [X, I] (n, d+n), and the bank [X, AX, ...] (n, k d) that it should output.

    ``error_probability`` is that of one prime, over residues: how likely a wrong layer passes.
    """

    weights: IHA
    a: np.ndarray
    x: np.ndarray
    target: np.ndarray
    k: int
    d: int
    error_probability: Fraction = Fraction(0)

    @property
    def n(self) -> int:
        return self.a.shape[0]

    @cached_property
    def output(self) -> np.ndarray:
        """The first k d columns of the layer's output; the rest is padding."""
        return forward(self.weights, self.x, linear)[:, : self.k * self.d]

    @cached_property
    def positional(self) -> np.ndarray:
        """The feature rows of the query and key weights: zero when queries and keys read positions only."""
        return np.concatenate([self.weights.w_q[:, : self.d].reshape(1, -1),
                               self.weights.w_k[:, : self.d].reshape(1, -1)], axis=1)

    @cached_property
    def rounding(self) -> np.ndarray:
        """What rounding can do to an output entry in float64: gamma_m times the layer on absolute values.

        m adds the lengths of the inner products between the input and the output, and one rounding of each weight, of the
        input and of the target (they are computed exactly and rounded once); twice m covers the rounding of the bound
        itself. Nothing under- or overflows: entries far from 1 are refused when the instance is built.
        """
        size = self.weights.sizes
        m = 3 * (size["model"] + size["source"] + 1) + self.n * size["pseudo"] + size["key"]
        m += size["head"] * size["pseudo"] + 12
        m *= 2
        unit = np.finfo(np.float64).eps / 2
        magnitude = IHA(**{name: np.abs(array) for name, array in self.weights.fields().items()})
        return m * unit / (1 - m * unit) * forward(magnitude, np.abs(self.x), linear)[:, : self.k * self.d]


def bank(build: Build, *, domain: Domain, k: int, d: int, n: int = 0, graph: Graph | str | None = None,
         normalize: str = "none", features: np.ndarray | None = None, prime: int = 0, seed: int = 0,
         rational: bool = False, symmetric: bool = False) -> Bank:
    """The instance of a filter bank: A and X as the domain wants them, the layer built on A, the oracle's bank.

    Args:
        build: A to the layer. k, d: powers and features.
        n: size of a symbolic or random A. graph: A, in place of ``n``.
        features: X; None takes symbols, a generic point (exact domains), random residues or random integers (floats).
        rational: symbols over the rationals instead of the integers. symmetric: the symbolic A is symmetric.
    """
    if domain is POLYNOMIALS:
        matrices, _ = symbols({"a": (n, n), "x": (n, d)}, rational=rational)
        a, x = matrices["a"], matrices["x"]
        if symmetric:
            a = np.where(np.tri(n, dtype=bool), a, a.T)
        return _with_oracle(build(a), a, x, k, d)
    # A stream of its own for each prime: the draws modulo different primes are independent.
    source = np.random.default_rng((seed, prime))
    if graph is not None:
        entries = (load_graph(graph, normalize=normalize) if isinstance(graph, str) else graph).adjacency
    else:
        entries = source.integers(-9, 10, (n, n)).astype(object)
    n = entries.shape[0]
    if domain is RESIDUES:
        a = Residues(source.integers(0, prime, (n, n)) if graph is None else entries, prime)
        x = Residues(source.integers(0, prime, (n, d)), prime)
        weights = build(a)
        return _with_oracle(weights, a, x, k, d, _error(weights, None if graph is None else entries, k, d))
    if domain is FLOATS:
        x = source.integers(-9, 10, (n, d)).astype(object) if features is None else features
        a, x = RATIONALS.array(entries), RATIONALS.array(x)
        exact = _with_oracle(build(a), a, x, k, d)
        _refuse_extremes(*exact.weights.fields().values(), exact.x, exact.target)
        weights = IHA(**{name: to_float(array) for name, array in exact.weights.fields().items()})
        return Bank(weights, to_float(a), to_float(exact.x), to_float(exact.target), k, d)
    a = domain.array(entries)
    weights = build(a)
    if features is None:
        features = deciding_features(weights, a, k, d)
    return _with_oracle(weights, a, domain.array(features), k, d)


def _refuse_extremes(*arrays: np.ndarray) -> None:
    """Refuse non-zero numbers beyond 2^250 or below 2^-250: a product of four of them would leave the doubles.

    Raises:
        ValueError: there is one.
    """
    for array in arrays:
        for value in array.flat:
            size = abs(as_fraction(value))
            if size and not _TINY <= size <= 1 / _TINY:
                raise ValueError("float means: a number beyond 2^250 or below 2^-250 occurs, whose products leave the "
                                 "doubles; take fewer powers, scale the matrix, or use exact means")


def deciding_features(weights: IHA, a: np.ndarray, k: int, d: int, projection: np.ndarray | None = None) -> np.ndarray:
    """Features (n, d), integers, at which output and bank agree only if they agree for every X.

    It holds for layers whose queries and keys read positions only: then both sides are affine in X, with coefficients
    below the bound that is computed here (see :func:`constructions.blocks.generic_features`).

    Raises:
        ValueError: a query or key weight reads a feature.
    """
    if any(value != 0 for w in (weights.w_q, weights.w_k) for value in w[:, :d].flat):
        raise ValueError("one generic X decides only for queries and keys that read positions; give the features")
    bound, denominator = expansion_bound(weights, a.shape[0], projection)
    row, common = row_sum(a)
    scaled = bound * common ** (k - 1) + denominator * (row * common) ** (k - 1)
    return generic_features(a.shape[0], d, scaled)


def _with_oracle(weights: IHA, a: np.ndarray, x: np.ndarray, k: int, d: int, error: Fraction = Fraction(0)) -> Bank:
    return Bank(weights, a, np.concatenate([x, unit_like(a, a.shape[0])], axis=1), filter_bank(a, x, k), k, d, error)


def _error(weights: IHA, entries: np.ndarray | None, k: int, d: int) -> Fraction:
    """The error probability of one prime: A random when ``entries`` is None, else X alone is random.

    The coefficients of output minus target are at most those of an A whose entries are all 1 (symbolic A), or are
    bounded by row sums of the given A. Every mixing weight is 0 or 1.
    """
    size = weights.sizes
    mixing = (array for name, array in weights.fields().items() if name in MIXING)
    if not all(np.isin(np.asarray(array), (0, 1)).all() for array in mixing):
        raise ValueError("residues: the error probability is known for mixing weights of 0 and 1 only; use exact means")
    row, common = (size["key"], 1) if entries is None else row_sum(entries)
    top = max(size["source"] * (size["value"] // d), k)
    terms = (size["source"] * size["model"]) ** 3 * size["key"] ** 2 * size["pseudo"] ** 2 * size["head"]
    return miss_probability(2 * terms * (row * common) ** top, 3 if entries is not None else top + 3)

