"""Algorithm 1 transcribed index by index, in plain Python loops over nested lists.

It imports nothing from the packages: it is the independent statement of what the layer is. Everything counts from 0,
and pseudo-heads are stacked as the algorithm stacks them: virtual row j * N + n.
"""

from math import exp, sqrt


def zero(values):
    while isinstance(values, list):
        values = values[0]
    return values - values


def project(x, w):
    """Rows of x times the matrix w."""
    o = zero(x)
    return [[sum((x[n][i] * w[i][e] for i in range(len(w))), o) for e in range(len(w[0]))] for n in range(len(x))]


def mixed(x, w, alpha, h, j):
    """sum over m of alpha[m][h][j] X W^m."""
    o = zero(x)
    base = [project(x, w[m]) for m in range(len(w))]
    return [[sum((alpha[m][h][j] * base[m][n][e] for m in range(len(w))), o) for e in range(len(w[0][0]))]
            for n in range(len(x))]


def identity_rows(scores):
    """act = identity: linear attention."""
    return scores


def softmax_rows(scores, beta):
    """The row softmax of beta times the scores, in floats."""
    rows = []
    for row in scores:
        weights = [exp(beta * s) for s in row]
        rows.append([w / sum(weights) for w in weights])
    return rows


def power_rows(scores, base):
    """The weights base ** score of a row over their sum, for exact rationals."""
    rows = []
    for row in scores:
        weights = [base ** int(s) for s in row]
        total = sum(weights[1:], weights[0])
        rows.append([w / total for w in weights])
    return rows


def hard_rows(scores, one):
    """The uniform average over the maximal scores of a row."""
    rows = []
    for row in scores:
        best = max(row)
        hits = sum(1 for s in row if s == best)
        rows.append([one / hits if s == best else one - one for s in row])
    return rows


def iha(w, x, act):
    """The output of one layer: a list of N rows, the heads side by side.

    Args:
        w: the seven weights by name, nested lists in the index order of the algorithm: w_q[m][i][e],
            alpha_q[m][h][j], collapse[h][h'][j].
        x: the input, N rows. act: a function of the (P N) x (P N) scores of one head.
    """
    heads, pseudos = len(w["alpha_q"][0]), len(w["alpha_q"][0][0])
    o = zero(x)
    tokens = len(x)
    attended = {}
    for h in range(heads):
        q, k, v = [], [], []
        for j in range(pseudos):
            q += mixed(x, w["w_q"], w["alpha_q"], h, j)
            k += mixed(x, w["w_k"], w["alpha_k"], h, j)
            v += mixed(x, w["w_v"], w["alpha_v"], h, j)
        scores = [[sum((a * b for a, b in zip(row, key, strict=True)), o) for key in k] for row in q]
        weights = act(scores)
        stacked = [[sum((weights[r][c] * v[c][e] for c in range(len(v))), o) for e in range(len(v[0]))]
                   for r in range(len(q))]
        for j in range(pseudos):
            attended[h, j] = stacked[j * tokens : (j + 1) * tokens]
    rows = []
    for n in range(tokens):
        row = []
        for out in range(len(w["collapse"])):
            for e in range(len(attended[0, 0][0])):
                row.append(sum((w["collapse"][out][h][j] * attended[h, j][n][e]
                                for h in range(heads) for j in range(pseudos)), o))
        rows.append(row)
    return rows


def mha(w, x, act):
    """Multi-head attention: the heads side by side, each with its own weights."""
    o = zero(x)
    outputs = []
    for h in range(len(w["w_q"])):
        q, k, v = (project(x, w[name][h]) for name in ("w_q", "w_k", "w_v"))
        weights = act([[sum((a * b for a, b in zip(row, key, strict=True)), o) for key in k] for row in q])
        outputs.append([[sum((weights[n][c] * v[c][e] for c in range(len(v))), o) for e in range(len(v[0]))]
                        for n in range(len(x))])
    return [[value for output in outputs for value in output[n]] for n in range(len(x))]


def scale(d_k):
    """1/sqrt(d_k)."""
    return 1 / sqrt(d_k)
