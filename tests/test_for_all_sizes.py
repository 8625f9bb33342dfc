"""An inequality for all sizes is about the sizes that its case names: at small numbers it is the difference it should be."""

import re
from itertools import product

import pytest

from constructions import CATALOGUE
from constructions.closed_forms import cpm3_iha, cpm3_mha, filter_iha, filter_mha, shifts_iha, shifts_mha
from iha_theory.flops import score_pairs
from iha_theory.verification import build


def majorant(n, h):
    return shifts_iha(n, h) + (2 * h - 1) * n**2


#: For each inequality, what should not be negative, at numbers in the paper's letters.
DIFFERENCES = {
    "smaller": lambda N, d, k, H, **_: filter_mha(N, d, k) - filter_iha(N, d, H, H, H),
    "larger": lambda N, d, k, H, L, P, **_: filter_iha(N, d, H, L, P) - filter_mha(N, d, k),
    "tiled": lambda N, d, H, L, P, **_: filter_iha(N, d, H, H, H) - filter_iha(N, d, H, L, P),
    "order-above": lambda N, d, k, H, **_: 6 * H * N**2 - filter_iha(N, d, H, H, H),
    "order-below": lambda N, d, k, H, **_: filter_iha(N, d, H, H, H) - 2 * H * N**2,
    "cpm3-attention": lambda N, H, **_: shifts_mha(N) - shifts_iha(N, H),
    "cpm3-total": lambda N, H, **_: cpm3_mha(N) - cpm3_iha(N, H),
    "cpm3-17": lambda N, H, **_: 17**2 * N**5 - 2 * shifts_iha(N, H) ** 2,
    "cpm3-majorant": lambda N, H, **_: majorant(N, H) - (cpm3_iha(N, H) - N**3),
    "cpm3-200": lambda N, H, **_: 200 * N**5 - majorant(N, H) ** 2,
    "cpm3-37": lambda N, H, **_: 37**2 * N**5 - majorant(N, H) ** 2,
    # A head more than sqrt N leaves H^2 - N = b columns of the MLP unused: its size is N^2 (N + b) + N^2.
    "cpm3-cube": lambda N, H, b, **_: shifts_iha(N, H) + (N + b) * N**2 + N**2 - N**3,
    # From (N + d) m to (N + t + d) (m + 2at), where 2aN - bd = m.
    "stays": lambda N, d, a, m, t: (N + t + d) * (m + 2 * a * t) - (N + d) * m,
}
CASES = [pytest.param(section, case, id=f"{section.claims[0].id}: {case.name}") for theorem in CATALOGUE
         for section in theorem.sections for case in section.cases if section.claims and section.claims[0].id in DIFFERENCES]


def sizes(name, given):
    """The sizes that a case's name gives, read from left to right: ``"H=2, k=3+s, N=kd+1+t"``."""
    found = {}
    for part in name.split(", "):
        *letters, formula = part.split("=")
        if ">" in part:
            found[part.split()[0]] = given[part.split()[0].lower()]
        elif not formula or len(part) == 1:
            found[part] = given[part.lower()]
        else:
            formula = re.sub(r"\bkd\b", "k*d", formula).replace("^", "**")
            value = eval(formula, {}, {**given, **found})  # noqa: S307
            found |= dict.fromkeys(letters, value)
    return found


@pytest.mark.parametrize(("section", "case"), CASES)
def test_an_inequality_is_about_the_sizes_that_its_name_gives(section, case):
    names = case.parameters["names"].split()
    for values in product((0, 1, 3), repeat=len(names)):
        given = dict(zip(names, values, strict=True))
        at = sizes(case.name, given)
        if case.name == "H=1, N=1":
            assert at == {"H": 1, "N": 1}
        wanted = DIFFERENCES[section.claims[0].id](**at)
        assert case.parameters["function"](*values) == wanted, (given, at)


#: Inequalities that say "at most" or "not larger"; all others are strict.
NOT_STRICT = {"stays", "tiled", "order-above", "cpm3-17", "cpm3-majorant", "cpm3-200"}


@pytest.mark.parametrize(("section", "case"), CASES)
def test_fewer_and_more_are_strict_and_at_most_is_not(section, case):
    instance = build(section, case)
    assert instance.strict == (section.claims[0].id not in NOT_STRICT)
    assert instance.least.tolist() == [int(instance.strict), *[0] * (len(instance.coefficients) - 1)]
    ending = ", and the constant one is positive" if instance.strict else "difference is negative"
    assert section.claims[0].says.endswith(ending)


def test_every_inequality_but_one_is_among_them():
    """The window of a global IHA layer is judged by the test below."""
    listed = {section.claims[0].id for theorem in CATALOGUE for section in theorem.sections for case in section.cases
              if "function" in case.parameters}
    assert listed - set(DIFFERENCES) == {"schedule-above"}


@pytest.mark.parametrize(("p", "t"), list(product((0, 1, 2), (0, 1, 5))))
def test_the_excess_of_a_global_iha_layer_is_its_pairs_less_the_baseline(p, t):
    """4 local layers of window N / (2 P^2) and a global one, all IHA, against 5 global ones of multi-head attention."""
    [case] = [case for theorem in CATALOGUE for section in theorem.sections for case in section.cases
              if section.claims and section.claims[0].id == "schedule-above"]
    heads, n = 2 + p, 2 * (2 + p) ** 2 * (1 + t)
    window = n // (2 * heads**2)
    pairs = 4 * score_pairs(n, heads, "token", window) + score_pairs(n, heads, "token")
    excess = pairs - 5 * score_pairs(n, 1, "token")
    factor = case.parameters["function"](p, n - 1)
    # (P^2-1)(N+1)P^2 - N - 2P^2 over 5 P^2 (N+1) of the baseline's 5 N(N+1)/2 pairs.
    assert factor == (heads**2 - 1) * (n + 1) * heads**2 - n - 2 * heads**2
    assert 2 * heads**2 * excess == factor * n
