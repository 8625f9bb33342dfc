"""Shared brick of Theorems 1 and 3: which cases of a filter bank a user's options ask for, and whether they fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from constructions.blocks import row_sum
from iha_theory.claims import Case, Means, Request, Scope
from iha_theory.count import memory
from iha_theory.graphs import Graph
from iha_theory.residues import random_primes
from iha_theory.scalars import FLOATS, INTEGERS, POLYNOMIALS, RATIONALS, RESIDUES, Domain, as_fraction, domain_of

#: Above this, a case is refused before it starts.
MEMORY_LIMIT = 2 << 30
DEFAULT_K = 9
#: The options that a filter bank takes.
OPTIONS = ("graph", "features", "k", "n", "pseudo_heads")
PRIMES = 3
#: n to the largest k whose powers of a symbolic A stay small enough to multiply out.
SYMBOLIC = {1: 64, 2: 36, 3: 16, 4: 9, 5: 4, 6: 4}
#: More powers than anyone asks for.
LARGEST_K = 10**6
#: Up to so many nodes a graph is checked with two generic features, beyond with one.
_SMALL_GRAPH = 100

#: k and d and the number of tokens to the sizes of the layer's axes.
Sizes = Callable[[int, int, int], Mapping[str, int]]


def requested_banks(request: Request, sizes: Sizes, **parameters: Any) -> tuple[Case, ...]:
    """The case of a user's graph or sizes, at the strongest means that fits, or at the means asked for.

    Args:
        request: the options. A graph or a size n or k is needed, else there is no case.
        sizes: the axes of the layer that will be built. parameters: more arguments of the section's instance.

    Raises:
        ValueError: k or n below 1, means that do not serve this graph, or more memory than fits.
    """
    if request.graph is None and request.k is None and (request.n is None or request.modulus is not None):
        return ()
    k = DEFAULT_K if request.k is None else request.k
    if k < 1:
        raise ValueError(f"k: got {k}, wanted at least 1 power")
    if k > LARGEST_K:
        raise ValueError(f"k: got {k}, wanted at most {LARGEST_K} powers")
    case = _of_sizes(request, k) if request.graph is None else _of_graph(request, request.graph)
    options = {**case.parameters, "k": k, **parameters}
    if request.pseudo_heads is not None:
        options["pseudo_heads"] = request.pseudo_heads
    if case.domain is RESIDUES:
        denominator = row_sum(request.graph.adjacency)[1] if request.graph is not None else 1
        options["primes"] = tuple(random_primes(PRIMES, k, denominator))
    _refuse_if_too_large(case.domain, options, sizes)
    return (Case(f"{case.name}, k={k}", case.domain, case.scope, options),)


def _of_sizes(request: Request, k: int) -> Case:
    n = 3 if request.n is None else request.n
    if n < 1:
        raise ValueError(f"n: got {n}, wanted at least 1 token")
    if request.features is not None:
        raise ValueError("features belong to a graph; give the graph too")
    fits = k <= SYMBOLIC.get(n, 0)
    means = request.means or (Means.EXACT if fits else Means.RESIDUE)
    if means is Means.EXACT and not fits:
        raise ValueError(f"exact means without a graph take a symbolic A, which n={n}, k={k} makes too large (n=3 goes up to "
                         f"k={SYMBOLIC[3]}, n=4 to k={SYMBOLIC[4]}); use residue means, or give a graph")
    domain = {Means.EXACT: POLYNOMIALS, Means.RESIDUE: RESIDUES, Means.FLOAT: FLOATS}.get(means)
    if domain is None:
        raise ValueError(_UNSERVED.format(means.name.lower()))
    kind, scope = ("symbolic A", Scope.SIZE) if domain is POLYNOMIALS else ("random A", Scope.SIZE)
    if domain is FLOATS:
        scope = Scope.INPUT
    return Case(f"{kind}, n={n}, d=2", domain, scope, {"n": n, "d": 2})


_UNSERVED = "a filter bank is checked by exact, residue or float means, not by {} means"


def _of_graph(request: Request, graph: Graph) -> Case:
    features = request.features
    n = graph.adjacency.shape[0]
    if request.n is not None and request.n != n:
        raise ValueError(f"n: got {request.n}, but {graph.name} has {n} nodes; leave n out")
    means = request.means or (Means.EXACT if graph.is_exact else Means.FLOAT)
    if not graph.is_exact and means is not Means.FLOAT:
        raise ValueError(f"{graph.name}: {graph.normalization} normalisation has square roots, which {means.name.lower()} "
                         "means do not serve; use float means, or normalise by rows")
    domain: Domain | None = {Means.RESIDUE: RESIDUES, Means.FLOAT: FLOATS}.get(means)
    if means is Means.EXACT:
        given = [graph.adjacency] if features is None else [graph.adjacency, features]
        domain = domain_of([_numbers(array) for array in given])
    if domain is None:
        raise ValueError(_UNSERVED.format(means.name.lower()))
    d = features.shape[1] if features is not None else 2 if n <= _SMALL_GRAPH else 1
    if features is not None and domain is RESIDUES:
        raise ValueError("residue means draw the features at random; leave the features out, or use exact means")
    scope = Scope.INPUT if features is not None or domain is FLOATS else Scope.GRAPH
    name = f"{graph.name}, n={n}, d={d}" if features is None else f"{graph.name}, n={n}, given X, d={d}"
    return Case(name, domain, scope, {"graph": graph, "d": d, "features": features})


def _numbers(array: Any) -> Any:
    """Rationals without a denominator as integers, so that the smaller domain is found."""
    exact = RATIONALS.array(array)
    if all(as_fraction(value).denominator == 1 for value in exact.flat):
        return INTEGERS.array(exact)
    return exact


def _refuse_if_too_large(domain: Domain, options: Mapping[str, Any], sizes: Sizes) -> None:
    """Refuse a case whose arrays exceed :data:`MEMORY_LIMIT`, naming the means that would fit."""
    if domain is POLYNOMIALS:
        return
    graph, k, d = options.get("graph"), options["k"], options["d"]
    n = graph.adjacency.shape[0] if graph is not None else options["n"]
    layer = sizes(k, d, n)
    floats = memory(layer, n, 8)
    needed = floats if domain is RESIDUES else _exact_memory(layer, options, n, domain)
    if needed > MEMORY_LIMIT:
        fits = domain is not RESIDUES and floats <= MEMORY_LIMIT
        advice = "residue means would fit" if fits else "no means fits; take fewer powers or a smaller graph"
        raise ValueError(f"n={n}, d={d}, k={k} over the {domain.name} needs about {needed / 2**30:.1f} GiB, more than "
                         f"the limit of {MEMORY_LIMIT / 2**30:.0f} GiB; {advice}")


def _exact_memory(layer: Mapping[str, int], options: Mapping[str, Any], n: int, domain: Domain) -> int:
    """Bytes of an exact case: a number and its pointer for each entry, and the digits of the large ones.

    The entries of a power have at most ``bits`` bits. A generic feature has up to n d digits of twice that size; the
    values, the state K^T V, the attended values, the output and the target hold such numbers.
    """
    graph, k, d = options.get("graph"), options["k"], options["d"]
    row, common = (9 * n, 1) if graph is None else row_sum(graph.adjacency)
    # Numerator and, if there is one, denominator.
    bits = k * ((row * common).bit_length() + (common.bit_length() if common > 1 else 0))
    if domain is FLOATS or options.get("features") is not None:
        return memory(layer, n, 72 + bits // 8)
    large = n * (layer["head"] * layer["pseudo"] * d + 3 * layer["head"] * layer["value"] + k * d)
    return memory(layer, n, 72 + bits // 16) + large * (n * d * 2 * bits) // 8
