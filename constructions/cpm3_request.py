"""What a user asks of Theorem 4: the sizes of CPM-3 from the options n, modulus and coefficient."""

from __future__ import annotations

from dataclasses import dataclass

from constructions.counting import check_task
from iha_theory.claims import Means, Request

#: The options that Theorem 4 takes.
OPTIONS = ("n", "modulus", "coefficient", "pseudo_heads")
#: The exact check of the layer with P = H grows as n^4.5; n = 25 takes some seconds.
LARGEST_N = 25
#: Up to here the tokens are symbols; beyond, they are numbers.
SYMBOLIC_N = 12
DEFAULT_N, DEFAULT_MODULUS = 4, 5


@dataclass(frozen=True)
class Asked:
    """n tokens, modulus M, coefficient G, and P if another routing than the paper's is wanted."""

    n: int
    modulus: int
    coefficient: int
    pseudo_heads: int | None


def asked(request: Request) -> Asked | None:
    """The sizes that a request asks for; None when it asks for something else.

    A request speaks of CPM-3 if it gives M or G, or n without a graph, features or k. What is not given is n = 4,
    M = 5 and G = 2M + 2, the least coefficient above 2M for which the predicate is never symmetric when M > 1. A
    coefficient of at most 2M is accepted: the construction does not need G > 2M.

    Raises:
        ValueError: n, M, G or P below 1, or n beyond what the exact check takes.
    """
    given = set(request.given())
    if not given & {"modulus", "coefficient"} and ("n" not in given or given & {"graph", "features", "k"}):
        return None
    if request.means not in (None, Means.EXACT):
        return None
    n = DEFAULT_N if request.n is None else request.n
    modulus = DEFAULT_MODULUS if request.modulus is None else request.modulus
    coefficient = 2 * modulus + 2 if request.coefficient is None else request.coefficient
    check_task(n, modulus, coefficient)
    if coefficient < 1:
        raise ValueError(f"CPM-3: got the coefficient G={coefficient}, wanted at least 1: with G=0 a sequence shorter "
                         "than n cannot be padded")
    if n > LARGEST_N:
        raise ValueError(f"CPM-3: n={n} is more than the exact check takes; wanted at most {LARGEST_N}")
    if request.pseudo_heads is not None and request.pseudo_heads < 1:
        raise ValueError(f"CPM-3: got P={request.pseudo_heads} pseudo-heads, wanted at least 1")
    return Asked(n, modulus, coefficient, request.pseudo_heads)
