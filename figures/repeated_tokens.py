"""Repeated tokens: multi-head attention is a line there, so is the printed example, and the corrected one is tanh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from matplotlib.figure import Figure

from constructions.repeated_tokens import repeated, separating_layer
from figures.style import LOOKS, canvas
from iha_theory.attention import Mask, flat_causal, softmax
from iha_theory.layer import IHA, forward, multi_head
from iha_theory.scalars import BALLS

CLAIMS = ("2/tanh", "2/tanh-flat", "2/zero-mixing", "2/example-linear", "2/example-printed", "2/zero-mixing-printed")

#: The number of repeated tokens, and the grid: from -3 to 3 in steps of 1/8.
TOKENS, REACH, STEPS = 4, 3, 8
Curve = tuple[float, ...]


@dataclass(frozen=True)
class Data:
    """The output against the score s of a token with itself, for value 1, and against a token t whose score is t^2.

    ``flat`` is the corrected example with the flat causal mask, of each token; ``three`` has P = 3, the third
    pseudo-head with zero mixing.
    """

    grid: Curve
    heads: Curve
    printed: Curve
    corrected: Curve
    three: Curve
    flat: tuple[Curve, ...]
    line: Curve
    printed_token: Curve
    corrected_token: Curve


def heads(query: Sequence[int], key: Sequence[int], value: Sequence[int]) -> IHA:
    """One head of multi-head attention with d_k = d_v = 1 and the given weights, as balls."""
    return multi_head(*(BALLS.array([[[weight] for weight in column]]) for column in (query, key, value)))


def outputs(layer: IHA, tokens: Sequence[Sequence[Fraction]], mask: Mask | None = None) -> tuple[Curve, ...]:
    """For each token, repeated: what the layer outputs at every place; (place, token), midpoints of the balls."""
    attention = softmax(mask=mask)
    found = [forward(layer, repeated(BALLS.array(list(token)), TOKENS), attention)[:, 0] for token in tokens]
    return tuple(tuple(float(column[place].mid()) for column in found) for place in range(TOKENS))


def data() -> Data:
    """Every curve is the output of built weights: nothing is evaluated by its formula."""
    grid = [Fraction(i, STEPS) for i in range(-REACH * STEPS, REACH * STEPS + 1)]
    score, pairs = heads((1, 0), (0, 1), (0, 1)), [(t, Fraction(1)) for t in grid]
    square, singles = heads((1,), (1,), (1,)), [(t,) for t in grid]
    return Data(
        tuple(map(float, grid)),
        outputs(score, pairs)[0],
        outputs(separating_layer(score, as_printed=True), pairs)[0],
        outputs(separating_layer(score), pairs)[0],
        outputs(separating_layer(score, 3), pairs)[0],
        outputs(separating_layer(score), pairs, flat_causal),
        outputs(square, singles)[0],
        outputs(separating_layer(square, as_printed=True), singles)[0],
        outputs(separating_layer(square), singles)[0],
    )


def draw(data: Data) -> Figure:
    """Two panels: against the score, and against a token of one feature."""
    figure = canvas("On repeated tokens the printed example is linear, like multi-head attention; with signs +, − on "
                    "the values it is tanh and separates the two", height=5.2)
    left, right = figure.subplots(1, 2)
    curves = (
        ("corrected", "corrected, values +, −", data.corrected),
        ("fourth", "corrected, flat mask, token 1", data.flat[1]),
        ("fifth", "corrected, flat mask, token 3", data.flat[3]),
        ("third", "P = 3, zero mixing: not as printed", data.three),
    )
    left.plot(data.grid, data.heads, **LOOKS["mha"].line_with(label="multi-head attention"))
    left.plot(data.grid, data.printed, **LOOKS["printed"].points_with(label="printed, values +, +", markevery=STEPS))
    for first, (look, label, curve) in enumerate(curves):
        left.plot(data.grid, curve, **LOOKS[look].both_with(label=label, markevery=(first, STEPS)))
    left.set(title="Token (s, 1): score s, value 1", xlabel="s, score of the token with itself", ylabel="output",
             ylim=(-1.15, 2.75))
    right.plot(data.grid, data.line, **LOOKS["mha"].line_with(label="multi-head attention"))
    right.plot(data.grid, data.printed_token, **LOOKS["printed"].points_with(label="printed", markevery=STEPS))
    right.plot(data.grid, data.corrected_token, **LOOKS["corrected"].both_with(label="corrected", markevery=STEPS))
    right.set(title="One feature, all weights 1: score t²", xlabel="t, the repeated token", ylabel="output")
    left.set_yticks([-1, -0.5, 0, 0.5, 1])
    left.legend(loc="upper left")
    right.legend(loc="upper left")
    return figure
