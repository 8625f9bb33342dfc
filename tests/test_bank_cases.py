"""Which case a user's options ask for: domain, scope, sizes and primes, and every refusal, at its edge."""

import dataclasses
import re
from contextlib import nullcontext

import numpy as np
import pytest

from constructions import bank_cases, polynomial_filter
from constructions.bank import bank
from constructions.bank_cases import MEMORY_LIMIT, PRIMES, requested_banks
from iha_theory import FLOATS, INTEGERS, POLYNOMIALS, RATIONALS, RESIDUES, Means, Request, Scope, load_graph
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


def test_memory_is_refused_beyond_the_limit_and_the_advice_is_what_fits(monkeypatch, tmp_path):
    """A layer of 2^28 numbers of 8 bytes fills the 2 GiB."""
    small = graph(tmp_path, [[0, 1], [2, 0]])
    monkeypatch.setattr(bank_cases, "memory", lambda layer, tokens, size: layer["numbers"] * size)

    def ask(numbers, means):
        layer = {"numbers": numbers, "head": 1, "pseudo": 1, "value": 1}
        return requested_banks(Request(graph=small, k=4, means=means), lambda k, d, n: layer)

    assert MEMORY_LIMIT == 2**31
    assert ask(2**28, Means.RESIDUE)
    for numbers, means, needs, advice in (
        (2**28 + 1, Means.RESIDUE, "residues needs about 2.0", "no means fits; take fewer powers or a smaller graph"),
        (2**28 + 1, Means.EXACT, "integers needs about 18.0", "no means fits; take fewer powers or a smaller graph"),
        (2**28, Means.EXACT, "integers needs about 18.0", "residue means would fit"),
        (2**28, Means.FLOAT, "floats needs about 18.2", "residue means would fit"),
    ):
        says = f"n=2, d=2, k=4 over the {needs} GiB, more than the limit of 2 GiB; {advice}"
        with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
            ask(numbers, means)


def test_the_memory_of_exact_means_by_hand(tmp_path):
    """Four heads, two pseudo-heads, n = 2, d = 1, k = 4: 188 weights and, twice, 16 virtual tokens of 3 features.

    Row sums below 3 take 2 bits, so that a power has 8; 48 large numbers have n d = 2 digits of twice 8 bits.
    """
    layer, entries = sizes(4, 1, 2) | {"pseudo": 2}, 188 + 2 * 16 * 3
    whole = {"graph": graph(tmp_path, [[0, 1], [2, 0]]), "k": 4, "d": 1}
    assert bank_cases._exact_memory(layer, whole, 2, INTEGERS) == 72 * entries + 48 * (2 * 2 * 8) // 8
    assert bank_cases._exact_memory(layer, whole, 2, FLOATS) == (72 + 8 // 8) * entries
    assert bank_cases._exact_memory(layer, whole | {"features": [[1], [2]]}, 2, INTEGERS) == (72 + 8 // 8) * entries
    # Numerators below 2 * 3 and the denominator 2: 3 + 2 bits, 20 for a power.
    halves = whole | {"graph": graph(tmp_path, [[0, 0.5], [2, 0]])}
    assert bank_cases._exact_memory(layer, halves, 2, FLOATS) == (72 + 20 // 8) * entries
    assert bank_cases._exact_memory(layer, halves, 2, RATIONALS) == (72 + 20 // 16) * entries + 48 * (2 * 2 * 20) // 8
    # Without a graph, entries of one digit: row sums of 63 take 6 bits; 188 weights and, twice, 56 tokens of 3 features.
    assert bank_cases._exact_memory(layer, {"k": 8, "d": 1}, 7, FLOATS) == (72 + 8 * 6 // 8) * (188 + 2 * 56 * 3)
    # Seven large numbers of 12 bits, in whole bytes.
    one = dict.fromkeys(layer, 1)
    assert bank_cases._exact_memory(one, {"graph": graph(tmp_path, [[2]]), "k": 3, "d": 1}, 1, INTEGERS) == 72 * (7 + 4) + 10


def test_the_range_of_float_means_is_two_to_the_250():
    from constructions.bank import _refuse_extremes

    edge = RATIONALS.array([2**250, 0, 1]) * -1
    _refuse_extremes(edge, RATIONALS.array([1]) / 2**250)
    for beyond in (RATIONALS.array([1, 2**250 + 1]), RATIONALS.array([1]) / (2**250 + 1)):
        with pytest.raises(ValueError, match=r"^float means: a number beyond 2\^250 or below 2\^-250 .* use exact means$"):
            _refuse_extremes(edge, beyond)


@pytest.mark.parametrize(("entry", "feature", "refused"), [
    (2**251, 0, True), (2**120, 2**140, True), (2**100, 2**100, False)])
def test_float_means_refuse_extreme_weights_and_extreme_outputs(tmp_path, entry, feature, refused):
    """k = 2: the weights hold A, the output holds A X."""
    large = dataclasses.replace(graph(tmp_path, [[1]]), adjacency=RATIONALS.array([[entry]]))
    source = {"domain": FLOATS, "k": 2, "d": 1, "graph": large, "features": RATIONALS.array([[feature]])}
    with pytest.raises(ValueError, match="beyond 2.250") if refused else nullcontext():
        bank(lambda a: polynomial_filter(a, 2, 1), **source)


def test_the_primes_of_a_request_are_the_same_each_time_and_others_for_another_size():
    first, again, other = (only(Request(n=9, k=k, means=Means.RESIDUE)).parameters["primes"] for k in (5, 5, 6))
    assert first == again != other
