"""Which case a user's options ask for: domain, scope, sizes and primes, and every refusal, at its edge."""

import re

import numpy as np
import pytest

from constructions.bank_cases import MEMORY_LIMIT, PRIMES, requested_banks
from iha_theory import FLOATS, INTEGERS, POLYNOMIALS, RATIONALS, RESIDUES, Means, Request, Scope, load_graph
from iha_theory.count import memory
from iha_theory.residues import is_prime


def sizes(k, d, n):
    return {"source": k, "head": k, "out": k, "pseudo": 1, "model": d + n, "key": n, "value": d}


def graph(tmp_path, matrix, name="g.npy", **options):
    np.save(tmp_path / name, np.asarray(matrix))
    return load_graph(tmp_path / name, **options)


def only(request, **more):
    (case,) = requested_banks(request, sizes, **more)
    return case


def test_without_graph_n_or_k_there_is_no_case():
    assert requested_banks(Request(), sizes) == ()
    assert requested_banks(Request(means=Means.FLOAT), sizes) == ()
    assert requested_banks(Request(n=3, modulus=5), sizes) == ()
    assert requested_banks(Request(n=3), sizes) != ()


@pytest.mark.parametrize(("n", "k", "means", "domain", "scope", "name"), [
    (None, 5, None, POLYNOMIALS, Scope.SIZE, "symbolic A, n=3, d=2, k=5"),
    (1, 1, None, POLYNOMIALS, Scope.SIZE, "symbolic A, n=1, d=2, k=1"),
    (4, 9, None, POLYNOMIALS, Scope.SIZE, "symbolic A, n=4, d=2, k=9"),
    (4, 10, None, RESIDUES, Scope.SIZE, "random A, n=4, d=2, k=10"),
    (3, 16, None, POLYNOMIALS, Scope.SIZE, "symbolic A, n=3, d=2, k=16"),
    (3, 17, None, RESIDUES, Scope.SIZE, "random A, n=3, d=2, k=17"),
    (7, 1, None, RESIDUES, Scope.SIZE, "random A, n=7, d=2, k=1"),
    (4, None, None, POLYNOMIALS, Scope.SIZE, "symbolic A, n=4, d=2, k=9"),
    (2, 3, Means.RESIDUE, RESIDUES, Scope.SIZE, "random A, n=2, d=2, k=3"),
    (2, 3, Means.EXACT, POLYNOMIALS, Scope.SIZE, "symbolic A, n=2, d=2, k=3"),
    (20, 3, Means.FLOAT, FLOATS, Scope.INPUT, "random A, n=20, d=2, k=3"),
])
def test_sizes_alone(n, k, means, domain, scope, name):
    case = only(Request(n=n, k=k, means=means))
    assert (case.domain, case.scope, case.name) == (domain, scope, name)
    assert case.parameters["n"] == (3 if n is None else n)
    assert case.parameters["k"] == (9 if k is None else k)
    assert case.parameters["d"] == 2
    primes = case.parameters.get("primes", ())
    assert len(primes) == (PRIMES if domain is RESIDUES else 0)
    assert all(is_prime(p) for p in primes)


def test_a_graph_is_checked_exactly_unless_it_cannot_be(tmp_path):
    whole = graph(tmp_path, [[0, 1], [2, 0]])
    half = graph(tmp_path, [[0, 0.5], [2, 0]])
    root = graph(tmp_path, [[0, 1], [1, 1]], normalize="sym")
    x = RATIONALS.array([[1], [2]])
    halves = x / 2
    for found, features, means, domain, scope in (
        (whole, None, None, INTEGERS, Scope.GRAPH), (half, None, None, RATIONALS, Scope.GRAPH),
        (whole, x, None, INTEGERS, Scope.INPUT), (whole, halves, None, RATIONALS, Scope.INPUT),
        (whole, None, Means.EXACT, INTEGERS, Scope.GRAPH), (whole, None, Means.RESIDUE, RESIDUES, Scope.GRAPH),
        (whole, None, Means.FLOAT, FLOATS, Scope.INPUT), (root, None, None, FLOATS, Scope.INPUT),
        (root, None, Means.FLOAT, FLOATS, Scope.INPUT), (whole, x, Means.FLOAT, FLOATS, Scope.INPUT)):
        case = only(Request(graph=found, features=features, means=means, k=2))
        assert (case.domain, case.scope) == (domain, scope)
        assert case.parameters["graph"] is found
        assert case.parameters["d"] == (2 if features is None else 1)
        assert case.name == f"g.npy, n=2, {'' if features is None else 'given X, '}d={case.parameters['d']}, k=2"


def test_large_graphs_are_checked_with_one_generic_feature(tmp_path):
    for n, d in ((100, 2), (101, 1)):
        assert only(Request(graph=graph(tmp_path, np.eye(n, dtype=int)), k=2)).parameters["d"] == d


def test_pseudo_heads_and_further_parameters_are_passed_on():
    case = only(Request(n=2, k=3, pseudo_heads=2), symmetric=True)
    assert case.parameters["pseudo_heads"] == 2
    assert case.parameters["symmetric"] is True
    assert "pseudo_heads" not in only(Request(n=2, k=3)).parameters


@pytest.mark.parametrize(("request_", "says"), [
    (Request(k=0), "k: got 0, wanted at least 1 power"),
    (Request(n=0, k=2), "n: got 0, wanted at least 1 token"),
    (Request(n=2, k=2, features=np.ones((2, 1))), "features belong to a graph; give the graph too"),
    (Request(n=7, k=2, means=Means.EXACT), "a symbolic A, which n=7, k=2 makes too large (n=3 goes up to k=16, n=4 to k=9)"),
    (Request(n=2, k=37, means=Means.EXACT), "which n=2, k=37 makes too large"),
    (Request(k=10**6 + 1), "k: got 1000001, wanted at most 1000000 powers"),
    (Request(n=2, k=2, means=Means.BALL), "checked by exact, residue or float means, not by ball means"),
    (Request(n=2, k=2, means=Means.PROOF), "not by proof means"),
])
def test_sizes_that_are_refused(request_, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        requested_banks(request_, sizes)


def test_graphs_that_are_refused(tmp_path):
    whole = graph(tmp_path, [[0, 1], [2, 0]])
    root = graph(tmp_path, [[0, 1], [1, 1]], normalize="sym")
    x = RATIONALS.array([[1], [2]])
    for request, says in (
        (Request(graph=whole, k=2, means=Means.BALL), "not by ball means"),
        (Request(graph=whole, k=2, n=3), "n: got 3, but g.npy has 2 nodes; leave n out"),
        (Request(graph=root, k=2, means=Means.EXACT), "sym normalisation has square roots, which exact means do not"),
        (Request(graph=root, k=2, means=Means.RESIDUE), "which residue means do not serve"),
        (Request(graph=whole, k=2, features=x, means=Means.RESIDUE), "residue means draw the features at random"),
    ):
        with pytest.raises(ValueError, match=says):
            requested_banks(request, sizes)
    assert only(Request(graph=whole, k=2, n=2)).parameters["graph"] is whole


def test_memory_is_estimated_from_the_layer_and_refused_at_the_limit(tmp_path):
    largest = next(k for k in range(1, 10**6) if memory(sizes(k, 2, 900), 900, 8) > MEMORY_LIMIT)
    dense = graph(tmp_path, np.ones((900, 900), dtype=int))
    assert requested_banks(Request(graph=dense, k=largest - 1, means=Means.RESIDUE), lambda k, d, n: sizes(k, 2, n))
    with pytest.raises(ValueError, match=r"n=900, d=1, k=\d+ over the residues needs about 2.0 GiB, more than the limit of "
                                         r"2 GiB; no means fits"):
        requested_banks(Request(graph=dense, k=largest, means=Means.RESIDUE), lambda k, d, n: sizes(k, 2, n))
    with pytest.raises(ValueError, match="over the integers needs about .* GiB, .*; residue means would fit"):
        requested_banks(Request(graph=dense, k=9), sizes)
    with pytest.raises(ValueError, match="over the floats needs about"):
        requested_banks(Request(graph=dense, k=100, means=Means.FLOAT), sizes)


def test_features_and_floats_need_no_generic_point_and_less_memory(tmp_path):
    middle = graph(tmp_path, np.ones((300, 300), dtype=int))
    x = RATIONALS.array(np.ones((300, 1), dtype=int))
    with pytest.raises(ValueError, match="over the integers"):
        requested_banks(Request(graph=middle, k=36), sizes)
    assert requested_banks(Request(graph=middle, k=36, features=x), sizes)
    assert requested_banks(Request(graph=middle, k=36, means=Means.FLOAT), sizes)


def test_the_range_of_float_means_is_two_to_the_250():
    from constructions.bank import _refuse_extremes

    edge = RATIONALS.array([2**250, 0, 1]) * -1
    _refuse_extremes(edge, RATIONALS.array([1]) / 2**250)
    for beyond in (RATIONALS.array([1, 2**250 + 1]), RATIONALS.array([1]) / (2**250 + 1)):
        with pytest.raises(ValueError, match=r"^float means: a number beyond 2\^250 or below 2\^-250 .* use exact means$"):
            _refuse_extremes(edge, beyond)
