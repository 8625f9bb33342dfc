"""What the tests of Theorem 2 share: small layers of multi-head attention, and any layer by the transcription with a mask."""

from fractions import Fraction
from typing import Any

import numpy as np

from constructions.score_functions import drawn
from iha_theory.layer import multi_head
from iha_theory.scalars import RATIONALS
from tests import reference


def one_head(query=1, key=1, value=1):
    """One head with one feature: W_Q, W_K and W_V are numbers."""
    return multi_head(*(RATIONALS.array([[[number]]]) for number in (query, key, value)))


def heads(h=2, d=3, key=2, value=4, seed=0):
    arrays, _ = drawn(RATIONALS, {"q": (h, d, key), "k": (h, d, key), "v": (h, d, value)}, seed=seed)
    return multi_head(arrays["q"], arrays["k"], arrays["v"])


def tokens(*values):
    return RATIONALS.array([[value] for value in values])


def nested(array) -> Any:
    if isinstance(array, np.ndarray):
        return [nested(part) for part in array]
    return Fraction(int(array.p), int(array.q))


def fractions(array):
    return [[nested(value) for value in row] for row in array]


def by_hand(layer, x, sees):
    """The layer by the transcription; ``sees(n, j, n2, j2)`` is the mask, on Fractions with base 2."""
    size = layer.sizes
    lists = {name: nested(array) for name, array in layer.fields().items()}
    count = len(x)

    def act(scores):
        rows = []
        for r, row in enumerate(scores):
            j, n = divmod(r, count)
            weights = [Fraction(2) ** int(s) if sees(n, j, c % count, c // count) else Fraction(0)
                       for c, s in enumerate(row)]
            rows.append([w / sum(weights) for w in weights])
        return rows

    assert size["pseudo"] == len(lists["alpha_q"][0][0])
    return reference.iha(lists, fractions(x), act)


def everyone(n, j, n2, j2):
    return True


def by_token(n, j, n2, j2):
    return n2 <= n


def flat(count):
    """The causal kernel on virtual positions n P + j, said by position."""
    return lambda n, j, n2, j2: n2 * count + j2 <= n * count + j
