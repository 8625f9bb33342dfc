"""The worked examples: k = 4 powers of a directed path, and the N = 4 cyclic shifts, every matrix by hand."""

from __future__ import annotations

import numpy as np

from constructions.theorem_3_polynomial_filter import polynomial_filter
from iha_theory.attention import linear
from iha_theory.display import Example
from iha_theory.scalars import INTEGERS

_MIXING_STEPS = {
    "alpha_q": "Head h's only live pseudo-query (pseudo 0) is base query h.",
    "alpha_k": "Head h's pseudo-key j is base key j, in every head.",
    "alpha_v": "Its pseudo-value j is base value j.",
    "collapse": "Output head h takes pseudo-head 0 of head h.",
}


def k4() -> Example:
    """k = 4 on the directed path 0 -> 1 -> 2 -> 3, where node i reads from node i + 1; features 1, 10, 100, 1000."""
    n, k, d = 4, 4, 1
    a = INTEGERS.array(np.eye(n, k=1, dtype=int))
    x = INTEGERS.array(np.concatenate([[[1], [10], [100], [1000]], np.eye(n, dtype=int)], axis=1))
    return Example(
        name="k4",
        title="k = 4 powers of a graph with two heads (Theorem 3)",
        text="The graph is the directed path 0 -> 1 -> 2 -> 3: node i reads from node i + 1, so A has ones above the\n"
        "diagonal and A^t X moves the features t places up. The features are 1, 10, 100, 1000, so that every sum can\n"
        "be read off. H = P = 2: head 0 outputs [X, AX], head 1 outputs [A^2 X, A^3 X]. Dots are zeros.",
        weights=polynomial_filter(a, k, d),
        x=x,
        attention=linear,
        one=INTEGERS.element(1),
        steps={
            "input": "[X, I]: one feature, then the identity positional code e0, ..., e3.",
            "w_q": "Base query m is [0; A^(2m)]: head 0 holds I, head 1 holds A^2. The feature row is zero.",
            "w_k": "Base key m is [0; (A^m)^T]: I and A^T.",
            "w_v": "Base value m places the feature into block m of the value.",
            **_MIXING_STEPS,
            "pseudo-queries": "Only pseudo 0 is not zero: I for head 0, A^2 for head 1.",
            "pseudo-keys": "The same two for both heads: I and A^T.",
            "pseudo-values": "X in block 0 for pseudo 0, X in block 1 for pseudo 1.",
            "scores": "Query A^(2h) against key (A^j)^T: the operator A^(2h + j). Keys are listed pseudo-major: (n, j) "
            "is token n of pseudo-key j, so the left half is A^(2h) and the right half A^(2h + 1).",
            "attention": "Linear attention applies the scores as they are.",
            "attended": "Row i of pseudo 0 is [(A^(2h) X)_i, (A^(2h+1) X)_i].",
            "output": "[X, AX, A^2 X, A^3 X]: row 0 reads 1, 10, 100, 1000.",
        },
        labels={"model": ["x", "e0", "e1", "e2", "e3"]},
    )


EXAMPLES = {"k4": k4}
