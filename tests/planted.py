"""What the tests of planted faults share: an instance of the filter bank over each domain, and its verdict."""

import numpy as np

from constructions.theorem_3_polynomial_filter import IHA_BANK
from iha_theory import FLOATS, INTEGERS, RATIONALS, RESIDUES, load_graph
from iha_theory.claims import Case, Scope
from iha_theory.verification import build, judge

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
