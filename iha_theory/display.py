"""A layer for the eye: every matrix of a worked example, stage by stage, with labels from the axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from iha_theory.attention import pattern, scores_of
from iha_theory.layer import AXES, IHA, Attention, collapsed, pseudo_heads
from iha_theory.scalars import object_array

_WIDEST = 110


@dataclass(frozen=True)
class Example:
    """A worked example: a layer, its input and what to say about it.

    Attributes:
        steps: a sentence for each stage: ``input``, the weights' names, ``pseudo``, ``scores``, ``attention``,
            ``collapse``, ``output``.
        labels: axis name to the labels of its entries, where numbers alone would not do.
        one: the identity of the scalars, to build the attention pattern with.
        formulas: what is computed, displays in LaTeX, for the page.
        note: a paragraph after the text, on how to read the matrices.
    """

    name: str
    title: str
    text: str
    weights: IHA
    x: np.ndarray
    attention: Attention
    steps: Mapping[str, str]
    labels: Mapping[str, Sequence[str]]
    one: object = 1
    formulas: Sequence[str] = ()
    note: str = ""


def stages(example: Example) -> list[tuple[str, str, str]]:
    """(stage, sentence, matrices as text) from the input to the output of an example."""
    weights, x = example.weights, example.x
    shown = [("input", labelled(x, "token model", example.labels))]
    for name, array in weights.fields().items():
        shown.append((name, labelled(array, AXES[name], example.labels)))
    q, k, v = pseudo_heads(weights, x)
    for name, array, last in (("pseudo-queries", q, "key"), ("pseudo-keys", k, "key"), ("pseudo-values", v, "value")):
        shown.append((name, labelled(array, f"head pseudo token {last}", example.labels)))
    weight = pattern(example.attention, q, k, example.one)
    tokens, pseudos = k.shape[2], k.shape[1]
    virtual = [f"{n},{j}" for j in range(pseudos) for n in range(tokens)]
    labels = {**example.labels, "token,pseudo": virtual}
    scores = scores_of(q, k).reshape(weight.shape)
    shown.append(("scores", labelled(scores, "head pseudo token token,pseudo", labels)))
    shown.append(("attention", labelled(weight, "head pseudo token token,pseudo", labels)))
    attended = example.attention(q, k, v)
    shown.append(("attended", labelled(attended, "head pseudo token value", example.labels)))
    shown.append(("output", labelled(collapsed(weights, attended), "token out-value", example.labels)))
    return [(name, example.steps.get(name, ""), text) for name, text in shown]


def labelled(array: np.ndarray, axes: str, labels: Mapping[str, Sequence[str]] | None = None) -> str:
    """An array as text: a matrix over its last two axes for each index of the others, zeros shown as dots.

    Args:
        array: any number of axes, at least two. axes: their names. labels: axis name to the labels of its entries.
    """
    names, labels = axes.split(), labels or {}

    def label(axis: str, index: int) -> str:
        known = labels.get(axis)
        return known[index] if known is not None and index < len(known) else str(index)

    row_axis, column_axis = names[-2:]
    rows = [label(row_axis, i) for i in range(array.shape[-2])]
    columns = [label(column_axis, j) for j in range(array.shape[-1])]
    parts: list[str] = []
    for outer in product(*(range(size) for size in array.shape[:-2])):
        cells = [[_cell(array[(*outer, i, j)]) for j in range(len(columns))] for i in range(len(rows))]
        widths = [max(len(columns[j]), *(len(row[j]) for row in cells)) for j in range(len(columns))]
        left = max(len(row_axis), *(len(row) for row in rows))
        place = ", ".join(f"{axis} {label(axis, index)}" for axis, index in zip(names[:-2], outer, strict=True))
        lines = [f"{place}  ({row_axis} x {column_axis})" if place else f"({row_axis} x {column_axis})"]
        header = "  ".join(column.rjust(width) for column, width in zip(columns, widths, strict=True))
        lines.append(f"{'':<{left}} | {header}")
        for name, row in zip(rows, cells, strict=True):
            lines.append(f"{name:<{left}} | " + "  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)))
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _cell(value: object) -> str:
    if isinstance(value, float | np.floating):
        return "." if value == 0 else f"{float(value):g}"
    return "." if value == 0 else str(value)


def readable(side: Any) -> str:
    """One side of a claim: a scalar as it is; matrices with labels; one entry a line where a row would be too wide."""
    array = side if isinstance(side, np.ndarray) else object_array(side)
    if not array.ndim:
        return str(array[()])
    if array.ndim == 1:
        text = ", ".join(str(value) for value in array)
    else:
        outer = ["block"] if array.ndim == 3 else [f"axis-{axis}" for axis in range(array.ndim - 2)]
        text = labelled(array, " ".join([*outer, "row", "column"]))
    if max(len(line) for line in text.splitlines()) <= _WIDEST:
        return text
    return "\n".join(f"[{', '.join(map(str, index))}]  {array[index]}" for index in np.ndindex(array.shape))


def as_text(example: Example) -> str:
    """The example for a terminal."""
    parts = [example.title, "=" * len(example.title), "", example.text]
    parts += ["", example.note] if example.note else []
    for name, sentence, matrices in stages(example):
        parts += ["", f"--- {name}{': ' + sentence if sentence else ''}", "", matrices]
    return "\n".join(parts) + "\n"


def as_markdown(example: Example, picture: str = "") -> str:
    """The example as a page.

    Args:
        picture: Markdown that stands before the first stage.
    """
    formulas = "\n\n".join(f"```math\n{formula}\n```" for formula in example.formulas)
    parts = [f"# {example.title}"]
    for part in (example.text, formulas, example.note, picture):
        parts += ["", part] if part else []
    for name, sentence, matrices in stages(example):
        parts += ["", f"## {name}", ""]
        if sentence:
            parts += [sentence, ""]
        parts += ["```", matrices, "```"]
    return "\n".join(parts) + "\n"
