"""Faults that were planted into the checks and that no other test noticed: each of them turns a test here red.

The checks of a filter bank must refute wrong layers over every domain, state error probabilities and rounding bounds
that are neither too small nor slack, and draw what they say they draw.
"""

import dataclasses
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest

import constructions.bank as bank_module
import constructions.bound_report as bounds_module
from constructions import CATALOGUE, polynomial_filter
from constructions.bank import bank, deciding_features
from constructions.bank_cases import requested_banks
from constructions.blocks import row_sum, symbols, unit_like
from constructions.bound_report import bound_report
from constructions.counting_pipeline import PIPELINE
from constructions.cpm3 import detects_every_swap, is_symmetric
from constructions.filter_mutants import skipping, untransposed, without_last_head
from constructions.least_heads import CONVENTIONS
from constructions.lower_bounds import sample
from constructions.oracle import filter_bank
from constructions.order_sensitivity import EXAMPLE_123, Order
from constructions.power_structure import Powers
from constructions.theorem_3_polynomial_filter import IHA_BANK
from iha_theory import FLOATS, INTEGERS, POLYNOMIALS, RATIONALS, RESIDUES, Request, forward, linear, load_graph
from iha_theory import report as report_module
from iha_theory.claims import Case, Claim, Means, Relation, Scope, Verdict
from iha_theory.commands import _serving
from iha_theory.comparison import compare
from iha_theory.layer import multi_head
from iha_theory.residues import Residues, random_primes
from iha_theory.scalars import as_fraction
from iha_theory.verification import build, jobs_of, judge, judge_case, strongest
from tests.test_verification import IS_FOUR, case, row, section, theorem

PRIMES = (1048583, 1048589)
ROUNDS = [(INTEGERS, None), (RATIONALS, None), (FLOATS, None), *((RESIDUES, prime) for prime in PRIMES)]
BANK = next(claim for claim in IHA_BANK.claims if claim.id == "bank")


def instance_of(domain, prime, k=4, d=2, **source):
    primes = {} if prime is None else {"primes": (prime,)}
    found = Case("", domain, Scope.INPUT, {"k": k, "d": d, "n": 3, "seed": 5, **primes, **source})
    return found, build(IHA_BANK, found)


def verdict(found, instance):
    return judge(BANK, found, instance).verdict


def graph(tmp_path, matrix):
    np.save(tmp_path / "g.npy", np.asarray(matrix))
    return load_graph(tmp_path / "g.npy")


def features_exchanged(instance):
    """The values hold the features in reverse order."""
    w_v = instance.weights.w_v.copy()
    w_v[:, : instance.d] = w_v[:, : instance.d][:, ::-1].copy()
    return dataclasses.replace(instance, weights=dataclasses.replace(instance.weights, w_v=w_v))


# The bank is refuted where it is wrong.


@pytest.mark.parametrize(("domain", "prime"), ROUNDS)
@pytest.mark.parametrize("wrong", [skipping, without_last_head, untransposed, features_exchanged])
def test_a_wrong_bank_fails_over_every_domain(domain, prime, wrong):
    found, instance = instance_of(domain, prime)
    assert verdict(found, instance) is (Verdict.AGREES if domain is FLOATS else Verdict.HOLDS)
    assert verdict(found, wrong(instance)) is Verdict.FAILS


@pytest.mark.parametrize(("domain", "prime"), ROUNDS)
def test_one_wrong_entry_of_any_weight_fails_over_every_domain(domain, prime):
    found, instance = instance_of(domain, prime)
    free = IHA_BANK.free(instance) if IHA_BANK.free else {}
    for name, array in instance.weights.fields().items():
        idle = np.broadcast_to(free.get(f"weights.{name}", False), array.shape)
        for index in np.ndindex(array.shape):
            moved = array.copy()
            moved[index] = moved[index] + 1
            wrong = dataclasses.replace(instance, weights=dataclasses.replace(instance.weights, **{name: moved}))
            assert (verdict(found, wrong) is Verdict.FAILS) == (not idle[index]), (name, index)


def at_these_features(weights, x):
    """The layer whose first value column also holds the first feature minus its numbers in x: wrong, but not at x."""
    w_v, d = weights.w_v.copy(), x.shape[1]
    w_v[0, 0, 0] = w_v[0, 0, 0] + 1
    for token, value in enumerate(x[:, 0]):
        w_v[0, d + token, 0] = w_v[0, d + token, 0] - value
    return dataclasses.replace(weights, w_v=w_v)


@pytest.mark.parametrize("domain", [INTEGERS, RATIONALS])
@pytest.mark.parametrize("k", [1, 4])
def test_the_generic_features_move_on_when_a_layer_is_made_to_fit_them(domain, k):
    found, right = instance_of(domain, None, k=k)
    fixed = domain.array(np.arange(1, 7).reshape(3, 2).astype(object))
    for x in (right.x[:, :2], fixed):
        def build_wrong(a, x=x):
            return at_these_features(polynomial_filter(a, k, 2), x)

        wrong = bank(build_wrong, domain=domain, k=k, d=2, n=3, seed=5)
        assert verdict(found, wrong) is Verdict.FAILS
        there = bank(build_wrong, domain=domain, k=k, d=2, n=3, seed=5, features=x)
        assert verdict(found, there) is Verdict.HOLDS


def test_the_generic_features_move_on_when_a_matrix_is_made_to_fit_them():
    """The layer outputs [X, 0]; A is chosen so that AX = 0 at the features that a zero matrix would get."""
    unit = INTEGERS.array([[[0, 0], [1, 0], [0, 1]]])
    weights = multi_head(unit, unit, INTEGERS.array([[[1, 0], [0, 0], [0, 0]]]))

    def judged(a, x):
        output = forward(weights, np.concatenate([x, unit_like(a, 2)], axis=1), linear)
        return compare(Relation.EQUAL, output, filter_bank(a, x, 2), INTEGERS).verdict

    first, second = deciding_features(weights, INTEGERS.array([[0, 0], [0, 0]]), 2, 1)[:, 0]
    assert second % first == 0
    a = INTEGERS.array([[second // first, -1], [0, 0]])
    assert judged(a, INTEGERS.array([[first], [second]])) is Verdict.HOLDS
    assert judged(a, INTEGERS.array(deciding_features(weights, a, 2, 1))) is Verdict.FAILS


def test_row_sums_bound_every_row():
    bound, denominator = row_sum(INTEGERS.array([[1, -2], [-3, 4]]))
    assert (7 <= bound <= 8, denominator) == (True, 1)
    assert row_sum(RATIONALS.array([[0, Fraction(3, 2)], [-5, Fraction(1, 3)]])) == (6, 6)


# What is built and drawn.


@pytest.mark.parametrize(("domain", "prime"), ROUNDS)
def test_the_weights_of_a_graph_are_those_of_its_matrix(domain, prime, tmp_path):
    rows = [[0, 3], [-2, 5]] if domain is INTEGERS else [[0, 3], [-2.5, 0.25]]
    _, instance = instance_of(domain, prime, graph=graph(tmp_path, rows))
    for i, j in np.ndindex(2, 2):
        wanted, got = Fraction(rows[i][j]), as_fraction(instance.a[i, j])
        assert (got * wanted.denominator - wanted.numerator) % (prime or 10**9) == 0
    # AX, the second block of the target, by hand.
    for i, c in np.ndindex(2, 2):
        wanted = sum(Fraction(rows[i][j]) * as_fraction(instance.x[j, c]) for j in range(2))
        gap = 4 * wanted - 4 * as_fraction(instance.target[i, 2 + c])
        assert gap % prime == 0 if prime else gap == 0


def test_the_draws_modulo_different_primes_are_independent():
    for seed, (p, q) in product((0, 7), combinations(random_primes(4, seed=1), 2)):
        one, other = (instance_of(RESIDUES, prime, n=12, seed=seed)[1] for prime in (p, q))
        for first, second in ((one.a, other.a), (one.x[:, :2], other.x[:, :2])):
            near = np.abs(np.asarray(first) / p - np.asarray(second) / q) < 1e-3
            assert near.mean() < 0.1
            assert np.asarray(first == second).mean() < 0.1
    again = [instance_of(RESIDUES, PRIMES[0], seed=seed)[1].x for seed in (3, 3, 4)]
    assert (again[0] == again[1]).all()
    assert not (again[0] == again[2]).all()


def test_primes_are_distinct_where_a_draw_repeats_one():
    drawn = random_primes(600, seed=0)
    assert len(set(drawn)) == 600
    given = [c.parameters["primes"] for t in CATALOGUE for s in t.sections for c in s.cases if "primes" in c.parameters]
    (asked,) = requested_banks(Request(n=7, k=2), lambda k, d, n: {
        "source": k, "head": k, "out": k, "pseudo": 1, "model": d + n, "key": n, "value": d})
    assert len(given) > 5
    for primes in (*given, asked.parameters["primes"]):
        assert len(set(primes)) == len(primes) > 1


# Bounds: of rounding, of the error of residues.


def gamma(operations):
    """What that many roundings can do: m u / (1 - m u), u = 2^-53."""
    return Fraction(operations, 2**53) / (1 - Fraction(operations, 2**53))


def test_the_rounding_bound_is_sound_and_tight_within_a_factor_of_three(tmp_path):
    """Positive numbers only: the layer on absolute values is the target itself."""
    x = RATIONALS.array([[3], [1]])
    found, instance = instance_of(FLOATS, None, k=4, d=1, graph=graph(tmp_path, [[1, 2], [3, 4]]), features=x)
    # The inner products on the way: query, key and value sum over 3 inputs and 2 base heads each; the state over 2 tokens
    # and 2 pseudo-heads; the scores over 2 key entries; the collapse over 2 heads and 2 pseudo-heads. One rounding for
    # each of the 7 weights and 3 inputs of a product, and for the target.
    operations = 3 * (3 + 2) + 2 * 2 + 2 + 2 * 2 + 7 + 3 + 1
    for bound, target in zip(instance.rounding.flat, instance.target.flat, strict=True):
        assert gamma(operations) * Fraction(target) <= Fraction(bound) <= 3 * gamma(operations) * Fraction(target)
    for share, wanted in ((5, Verdict.FAILS), (Fraction(1, 2), Verdict.AGREES), (0, Verdict.AGREES)):
        w_v = instance.weights.w_v.copy()
        w_v[0, 0, 0] *= float(1 + share * gamma(operations))
        wrong = dataclasses.replace(instance, weights=dataclasses.replace(instance.weights, w_v=w_v))
        assert verdict(found, wrong) is wanted, share


def missed(height, degree):
    """How likely a wrong layer passes at one prime.

    At most log2(height) / 20 of the primes above 2^20, of which there are 73586 less a thousand, divide a coefficient;
    modulo the others a polynomial of that degree vanishes with probability at most degree / 2^20.
    """
    return Fraction(height.bit_length(), 20 * 72586) + Fraction(degree, 2**20)


def test_the_error_probability_of_a_random_matrix_by_hand():
    """n = 5, d = 1, k = 4, so H = L = P = 2.

    A product chooses a base head (2) and an input (6) for each of query, key and value, two key entries or tokens (5),
    two pseudo-heads (2) and a head (2). With A all ones a power up to the fourth has entries of at most 5^4; output and
    target count twice. The degree is 4 in A, and three inputs may be features.
    """
    _, instance = instance_of(RESIDUES, PRIMES[0], k=4, d=1, n=5)
    terms = (2 * 6) ** 3 * 5**2 * 2**2 * 2
    assert instance.error_probability == missed(2 * terms * 5**4, 4 + 3)


def test_the_error_probability_of_a_given_matrix_by_hand(tmp_path):
    """n = 2, d = 1, k = 9, so H = L = P = 3; row sums up to 21/4 < 6 and denominators 4; only X is random."""
    _, instance = instance_of(RESIDUES, PRIMES[0], k=9, d=1, graph=graph(tmp_path, [[0, 3], [-5, 0.25]]))
    terms = (3 * 3) ** 3 * 2**2 * 3**2 * 3
    assert instance.error_probability == missed(2 * terms * (6 * 4) ** 9, 3)


def recorded(monkeypatch, module):
    """The (height, degree) pairs that the module's error probabilities are computed from."""
    pairs = []
    monkeypatch.setattr(module, "miss_probability", lambda *pair: pairs.append(pair) or Fraction(1, 1000))
    return pairs


def test_wrong_layers_stay_below_the_height_and_the_degree_of_a_random_matrix(monkeypatch):
    pairs = recorded(monkeypatch, bank_module)
    instance_of(RESIDUES, PRIMES[0], k=4, d=1, n=2)
    ((height, degree),) = pairs
    _, symbolic = instance_of(POLYNOMIALS, None, k=4, d=1, n=2, seed=0)
    reached = 0
    for wrong in (untransposed, without_last_head):
        instance = wrong(symbolic)
        for difference in (instance.output - instance.target).flat:
            for exponents, coefficient in difference.terms():
                assert abs(int(coefficient)) <= height
                assert sum(exponents) <= degree
                reached = max(reached, sum(exponents))
    assert reached == 4


def test_the_powers_of_a_given_matrix_stay_below_the_height(monkeypatch, tmp_path):
    given = graph(tmp_path, [[9, 8.5], [7, 6]])
    pairs = recorded(monkeypatch, bank_module)
    instance_of(RESIDUES, PRIMES[0], k=9, d=1, graph=given)
    pairs_of_bounds = recorded(monkeypatch, bounds_module)
    monkeypatch.setattr(bounds_module, "_EXACT_WORK", 0)
    bound_report(given.adjacency, 9)
    largest = filter_bank(given.adjacency, RATIONALS.array([[1], [1]]), 9)[:, 8].max()
    for height, degree in (*pairs, *pairs_of_bounds):
        assert height >= largest * 2**8
        assert degree >= 1
    assert len(pairs) == len(pairs_of_bounds) == 1


def test_the_height_of_the_bounds_by_hand(monkeypatch):
    """swap, k = 4, n = 2: 4 heads of width 1; row sums below 2 to the power 4k; the coefficients are 0 and 1."""
    pairs = recorded(monkeypatch, bounds_module)
    monkeypatch.setattr(bounds_module, "_EXACT_WORK", 0)
    bound_report(sample("swap"), 4)
    assert pairs == [(2 * (4 * 3) ** 3 * 2 * 2 * 4**3 * 2**16, 3)]


# The answer to the bounds.


def doubled_value(placed):
    w_v = placed.weights.w_v.copy()
    w_v[0, 0, 0] = w_v[0, 0, 0] + 1
    return dataclasses.replace(placed, weights=dataclasses.replace(placed.weights, w_v=w_v))


WRONG = {
    "one value changed": lambda meets: lambda p, a, d: doubled_value(meets(p, a, d)),
    "another matrix": lambda meets: lambda p, a, d: meets(p, a + unit_like(a, p.n), d),
}


@pytest.mark.parametrize("name", CONVENTIONS)
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("exactly", [True, False], ids=["exactly", "by residues"])
def test_one_wrong_layer_makes_the_bounds_unsound(monkeypatch, name, wrong, exactly):
    if not exactly:
        monkeypatch.setattr(bounds_module, "_EXACT_WORK", 0)
    for matrix, k in (("swap", 5), ("halves", 4), ("cyclic", 4)):
        good = bound_report(sample(matrix), k)
        assert good.is_sound
        assert all(("exactly" if exactly else "by 3 residues") in row[3] for row in good.rows)
        with monkeypatch.context() as patch:
            convention = CONVENTIONS[name]
            patch.setitem(CONVENTIONS, name, dataclasses.replace(convention, meets=WRONG[wrong](convention.meets)))
            bad = bound_report(sample(matrix), k)
        assert not bad.is_sound
        assert all(certificate["accepted"] for certificate in bad.certificates)


def test_the_residues_of_the_bounds_are_three_primes_and_three_draws(monkeypatch):
    drawn = []

    def remembering(a, x, k):
        drawn.append((a, x))
        return filter_bank(a, x, k)

    monkeypatch.setattr(bounds_module, "_EXACT_WORK", 0)
    monkeypatch.setattr(bounds_module, "filter_bank", remembering)
    n = 8
    bound_report(INTEGERS.array(np.roll(np.eye(n, dtype=int), 1, axis=1)), 2)
    assert len({x.prime for _, x in drawn}) == len(drawn) == 3
    for (_, first), (_, second) in combinations(drawn, 2):
        assert isinstance(first, Residues)
        near = np.abs(np.asarray(first) / first.prime - np.asarray(second) / second.prime) < 1e-3
        assert near.sum() < 2


@pytest.mark.parametrize("place", range(3))
def test_one_prime_refutes_a_layer_of_the_bounds(monkeypatch, place):
    primes = []
    convention = CONVENTIONS["free"]

    def wrong_at_one_prime(p, a, d):
        primes.append(a.prime)
        placed = convention.meets(p, a, d)
        return doubled_value(placed) if len(primes) == place + 1 else placed

    monkeypatch.setattr(bounds_module, "_EXACT_WORK", 0)
    monkeypatch.setitem(CONVENTIONS, "free", dataclasses.replace(convention, meets=wrong_at_one_prime))
    assert not bound_report(sample("swap"), 3).is_sound
    assert len(set(primes)) == 3


@pytest.mark.parametrize("name", CONVENTIONS)
def test_answers_by_residues_and_exact_ones_stay_with_their_conventions(monkeypatch, name):
    """One report, some of its layers above the limit of the exact check and some below."""
    a, k = sample("cyclic"), 4
    structure, most = Powers(a, k), 3 * 4**3
    monkeypatch.setattr(bounds_module, "_EXACT_WORK", most)
    large = {c.title for c in CONVENTIONS.values() if c.least(structure) > 3}
    report = bound_report(a, k)
    assert report.is_sound
    assert {row[0] for row in report.rows if "by 3 residues" in row[3]} == large
    assert 0 < len(large) < len(CONVENTIONS)
    assert all(row[3].startswith(f"{row[1]} heads") for row in report.rows)
    convention = CONVENTIONS[name]
    monkeypatch.setitem(CONVENTIONS, name, dataclasses.replace(
        convention, meets=WRONG["one value changed"](convention.meets)))
    assert not bound_report(a, k).is_sound


# Counting: what was tried, and what it speaks of.


def test_given_inputs_speak_of_themselves_only():
    assert PIPELINE.requested is not None
    scopes = set()
    for n, modulus in (*product(range(1, 10), range(1, 8)), (13, 2)):
        (found,) = PIPELINE.requested(Request(n=n, modulus=modulus))
        wanted = Scope.INPUT if "inputs" in found.parameters else Scope.SIZE
        assert found.scope is wanted, found.name
        if found.scope is Scope.SIZE and modulus**n <= 30:
            tried = {tuple(row) for row in build(PIPELINE, found).inputs}
            assert tried == set(product(range(modulus), repeat=n))
        scopes.add(found.scope)
    assert scopes == {Scope.INPUT, Scope.SIZE}
    for found in PIPELINE.cases:
        assert (found.scope is Scope.INPUT) == ("inputs" in found.parameters), found.name
        if found.name.split(", ")[2] == "every G":
            modulus = found.parameters["modulus"]
            assert {g % modulus for g in found.parameters["coefficients"]} == set(range(modulus))


@pytest.mark.parametrize("modulus", [2, 3, 4])
def test_no_residue_is_left_out_when_the_order_of_a_pair_is_asked_for(modulus):
    for place in product(range(modulus), repeat=3):
        if place[1] == place[2]:
            continue

        def only_there(x, a, b, g, m, place=place):
            return int((x, a, b) != place)

        def there_not(x, a, b, g, m, place=place):
            return 0 if (x, a, b) in (place, (place[0], place[2], place[1])) else a + 1

        assert not is_symmetric(modulus, 1, only_there)
        assert not detects_every_swap(modulus, 1, there_not)
    assert is_symmetric(modulus, 1, lambda x, a, b, g, m: x + a * b)
    assert detects_every_swap(modulus, 1, lambda x, a, b, g, m: a)


def test_no_coefficient_modulus_or_example_is_left_out():
    for modulus in range(1, 11):
        order = Order(modulus)
        assert min(order.coefficients) == 2 * modulus + 1
        assert sorted(g % modulus for g in order.coefficients) == list(range(modulus))
        assert order.symmetric.tolist() == [int(g % modulus == 1 % modulus) for g in order.coefficients]
    example = EXAMPLE_123.instance(domain=INTEGERS)
    # 2M < 10.
    assert example.moduli.tolist() == [0, 0, 1, 0]
    every_g = next(claim for claim in EXAMPLE_123.errata[0].corrected if claim.id == "example-every-g")
    assert every_g.left(example).tolist() == [1, 1, 1]


# Which theorems serve a request.


def refusing(request):
    raise ValueError(f"k: {request.k} is refused")


def test_the_refusal_of_the_only_theorem_is_what_the_user_reads():
    taking = theorem(section(case(4), requested=lambda r: (case(9),), options=("k",)), number="1")
    silent = theorem(section(case(4)), section(case(4), requested=lambda r: ()), number="2")
    strict = theorem(section(case(4), requested=refusing, options=("k",)), number="3")
    request = Request(k=5)
    assert _serving((silent, taking, strict), request) == (taking,)
    assert _serving((silent,), request) == (silent,)
    for book in ((strict,), (strict, silent), (silent, strict)):
        with pytest.raises(ValueError, match="k: 5 is refused"):
            _serving(book, request)


def test_an_option_that_nothing_takes_is_refused_and_never_ignored():
    taking = section(case(4), requested=lambda r: (case(9),) if r.k else (), options=("k", "pseudo_heads"))
    other = section(case(4), requested=lambda r: (case(8),) if r.modulus else (), options=("modulus", "n"))
    book = (theorem(taking, other), theorem(section(case(4)), number="8"))
    assert [job.name for job in jobs_of(book, Request(k=2, pseudo_heads=1))] == ["value=9"]
    assert len(jobs_of(book, Request(k=2, modulus=3, n=4))) == 2
    for request, idle in ((Request(k=2, n=4), "n"), (Request(modulus=3, pseudo_heads=2), "pseudo_heads"),
                          (Request(k=2, n=4, coefficient=7), "n, coefficient")):
        with pytest.raises(ValueError, match=f"Theorem 7, 8: nothing that is asked for takes {idle}; leave it out"):
            jobs_of(book, request)


# What the tables say.


def test_two_polynomials_that_differ_do_so_at_some_input_only():
    def symbol(*, domain):
        return symbols(domain, {"x": (1, 1)})[0]["x"]

    claims = [Claim(name, "", relation, lambda x: x, right, expect, scope=scope) for name, relation, right, expect, scope in (
        ("apart", Relation.DIFFERENT, lambda x: x * x, Verdict.HOLDS, None),
        ("refuted", Relation.EQUAL, lambda x: x * x, Verdict.FAILS, None),
        ("identity", Relation.EQUAL, lambda x: x + 0, Verdict.HOLDS, None),
        ("graph", Relation.DIFFERENT, lambda x: x * x, Verdict.HOLDS, Scope.GRAPH),
        ("every size", Relation.DIFFERENT, lambda x: x * x, Verdict.HOLDS, Scope.ALL))]
    found = Case("n=1", POLYNOMIALS, Scope.SIZE)
    of_symbols = dataclasses.replace(section(found), instance=symbol, claims=tuple(claims))
    rows = {row.claim: row for row in judge_case(theorem(of_symbols), of_symbols, found)}
    assert {name: found.scope for name, found in rows.items()} == {
        "apart": Scope.INPUT, "refuted": Scope.INPUT, "identity": Scope.SIZE, "graph": Scope.INPUT, "every size": Scope.ALL}
    assert {found.verdict for found in rows.values()} == {Verdict.HOLDS, Verdict.FAILS}
    assert "not an identity" in rows["apart"].remark
    assert rows["identity"].remark == ""


def test_a_summary_reads_all_rows_of_a_claim_in_any_order():
    weak = row(Verdict.AGREES, scope=Scope.INPUT, means=Means.FLOAT)
    middle = row(Verdict.HOLDS, scope=Scope.GRAPH, means=Means.EXACT)
    strong = row(Verdict.HOLDS, scope=Scope.SIZE, means=Means.RESIDUE)
    bad = row(Verdict.FAILS, scope=Scope.INPUT)
    for rows in permutations((weak, middle, strong)):
        (line,) = report_module.summary_rows(rows, [theorem()])
        assert line[3:] == ("holds", "every input of this size", "residues", "3")
        assert strongest(rows) is strong
    for rows in permutations((weak, strong, bad)):
        (line,) = report_module.summary_rows(rows, [theorem()])
        assert line[3:] == ("fails (UNEXPECTED: holds was expected)", "this input", "exact", "3")
        assert "UNEXPECTED" in report_module.overview(rows, [theorem()])


def test_the_overview_knows_a_statement_as_well_as_its_weakest_headline_claim():
    claims = [row(Verdict.HOLDS, claim="a", scope=Scope.ALL), row(Verdict.HOLDS, claim="b", scope=Scope.GRAPH),
              row(Verdict.HOLDS, claim="c", scope=Scope.GRAPH, means=Means.RESIDUE), row(Verdict.AGREES, claim="d")]
    # Of one claim, the strongest row counts.
    claims.append(row(Verdict.AGREES, claim="c", scope=Scope.INPUT, means=Means.FLOAT))
    for names in permutations("abc"):
        book = [dataclasses.replace(theorem(section(case(4), claims=(IS_FOUR,))), headline=names)]
        for rows in (claims, claims[::-1]):
            line = report_module.overview(rows, book).splitlines()[2]
            assert "| every X on this graph, residues |" in line
    (line,) = report_module.overview(claims, [dataclasses.replace(theorem(), headline=("a",))]).splitlines()[2:]
    assert "| every size, exact |" in line
