"""The worked examples: k = 4 powers of a directed path, and the N = 4 cyclic shifts, every matrix by hand."""

from __future__ import annotations

import numpy as np

from constructions.shifts import cyclic_shifts
from constructions.theorem_3_polynomial_filter import polynomial_filter
from iha_theory.attention import hard, linear
from iha_theory.display import Example
from iha_theory.scalars import INTEGERS, RATIONALS

_MIXING_STEPS = {
    "alpha_q": "Head h's only live pseudo-query (pseudo 0) is base query h.",
    "alpha_k": "Head h's pseudo-key j is base key j, in every head.",
    "alpha_v": "Its pseudo-value j is base value j.",
    "collapse": "Output head h takes pseudo-head 0 of head h.",
}

#: Algorithm 1; the attention of pseudo-query j of head h to all pseudo-keys of h stands in place of ATTENTION.
_ALGORITHM = r"""\begin{aligned}
\hat X &= [X, I] \\
Q_{h,j} &= \sum_m \alpha^Q_{m,h,j}\, \hat X W_Q^m, \qquad
K_{h,j} = \sum_m \alpha^K_{m,h,j}\, \hat X W_K^m, \qquad
V_{h,j} = \sum_m \alpha^V_{m,h,j}\, \hat X W_V^m \\
ATTENTION \\
O_h &= \sum_{h',j} R_{h,(h',j)}\, Y_{h',j}
\end{aligned}"""
_ORDER = (
    "The order of the pseudo-tokens. The N tokens of P pseudo-heads are N P virtual tokens. Algorithm 1 stacks the\n"
    "pseudo-heads: first all tokens of pseudo-head 0, then all of pseudo-head 1. Token n of pseudo-head j, written\n"
    "(n, j), stands at j N + n in that stack, which is pseudo-major, and the keys below are listed so. Where positions\n"
    "matter, the pseudo-tokens of one token stand side by side, interleaved: (n, j) has the virtual position n P + j.\n"
    "Without a mask, as here, the two orders give the same output. A causal kernel on the virtual tokens, and rotary\n"
    "positions on them, go by the position n P + j: see the errata thm2-flat-causal and thm2-rope."
)


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
        formulas=(
            _ALGORITHM.replace("ATTENTION", r"Y_{h,j} &= \sum_{j'} \bigl(Q_{h,j} K_{h,j'}^\top\bigr) V_{h,j'}"),
            r"""\begin{aligned}
Q_{h,0} K_{h,j}^\top &= A^{2h} A^{j} = A^{2h+j} \\
O_h = Y_{h,0} &= \sum_{j=0}^{1} A^{2h+j} V_{h,j} = \bigl[A^{2h} X,\; A^{2h+1} X\bigr] \\
[O_0, O_1] &= \bigl[X,\; A X,\; A^2 X,\; A^3 X\bigr]
\end{aligned}"""),
        note=_ORDER,
        weights=polynomial_filter(a, k, d),
        x=x,
        attention=linear,
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


def n4() -> Example:
    """The N = 4 cyclic shifts of the tokens 1, 2, 3, 4 by hard attention."""
    n = 4
    x = RATIONALS.array(np.concatenate([[[1], [2], [3], [4]], np.eye(n, dtype=int)], axis=1))
    return Example(
        name="n4",
        title="All cyclic shifts of N = 4 tokens with two heads (Theorem 4)",
        text="The tokens are 1, 2, 3, 4. Token i should read x_i, x_(i+1), x_(i+2), x_(i+3), all cyclically. S is the\n"
        "cyclic matrix with (S x)_i = x_(i+1). H = P = 2: head 0 outputs the shifts by 0 and 1, head 1 those by 2 and 3.\n"
        "Attention is hard: each row averages the values over its maximal scores. Dots are zeros.",
        formulas=(
            _ALGORITHM.replace("ATTENTION", r"Y_{h,j}[i] &= \mathrm{mean}\, \lbrace V_{h,j'}[n] : "
                               r"(Q_{h,j} K_{h,j'}^\top)_{i,n} \text{ is largest over all } (n, j') \rbrace"),
            r"""\begin{aligned}
(Q_{h,0} K_{h,j}^\top)_{i,n} &= (S^{2h} S^{j})_{i,n} =
\begin{cases} 1 & \text{if } n = (i + 2h + j) \bmod 4 \\ 0 & \text{else} \end{cases} \\
O_h[i] = Y_{h,0}[i] &= \tfrac12 \bigl(V_{h,0}[i + 2h] + V_{h,1}[i + 2h + 1]\bigr) =
\bigl[x_{i+2h},\; x_{i+2h+1}\bigr]
\end{aligned}"""),
        note=_ORDER,
        weights=cyclic_shifts(n),
        x=x,
        attention=hard,
        one=RATIONALS.element(1),
        steps={
            "input": "[x, I]: the token, then the identity positional code e0, ..., e3.",
            "w_q": "Base query m is [0; S^(2m)]: I and S^2. The token's row is zero.",
            "w_k": "Base key m is [0; (S^m)^T]: I and S^T.",
            "w_v": "Base value m writes twice the token into coordinate m: the average below halves it.",
            **_MIXING_STEPS,
            "pseudo-queries": "Head h, pseudo 0 of token i is the unit vector of position i + 2h.",
            "pseudo-keys": "Pseudo-key m of token n is the unit vector of position n - m.",
            "pseudo-values": "Twice the token, in coordinate m of pseudo-value m.",
            "scores": "1 exactly where n = i + 2h + m: two ones in each live row, one for each pseudo-key. Keys are "
            "listed pseudo-major: (n, m) is token n of pseudo-key m.",
            "attention": "The two maximal scores of a live row weigh 1/2 each. In a row of pseudo 1 all eight scores tie; "
            "R ignores it.",
            "attended": "Row i of head h, pseudo 0 is [x_(i+2h), x_(i+2h+1)].",
            "output": "Row i reads x_i, x_(i+1), x_(i+2), x_(i+3).",
        },
        labels={"model": ["x", "e0", "e1", "e2", "e3"]},
    )


EXAMPLES = {"k4": k4, "n4": n4}
