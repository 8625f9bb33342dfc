"""Figures: each draws what the evidence and the accounts say. One module for each figure, same stem as its SVG.

>>> import figures
>>> figures.NAMES[0]
'parameters_against_k'

A figure's module has ``CLAIMS``, the claims that its picture rests on, ``data()``, which computes every number that
is shown, and ``draw(data)``. A figure is refused when one of its claims is not judged as expected. matplotlib is
loaded when something is drawn, not before.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

#: The figures, in the order of the paper.
NAMES = (
    "parameters_against_k",
    "least_heads",
    "crossover_map",
    "operator_span",
    "border_rank",
    "repeated_tokens",
    "flat_causal",
    "cpm3_parameters",
    "soft_to_hard",
    "worked_examples",
    "schedule_flops",
)
FORMATS = ("svg", "png", "pdf")


class Disappointed(Exception):
    """A claim that a figure rests on is not judged as expected, so that the figure would state what is not so."""


def module_of(name: str) -> ModuleType:
    """The module of a figure.

    Raises:
        ValueError: there is no such figure; the message has the nearest names.
    """
    if name not in NAMES:
        from iha_theory.files import suggestion

        raise ValueError(f"unknown figure {name!r}; {suggestion(name, NAMES)}")
    return import_module(f"figures.{name}")


def rendered(name: str, form: str = "svg") -> bytes:
    """A figure as a file's content; the same bytes each time.

    Args:
        name: one of :data:`NAMES`. form: one of :data:`FORMATS`.

    Raises:
        ValueError: an unknown figure or form. Disappointed: a claim of the figure does not stand.
    """
    module = module_of(name)
    if form not in FORMATS:
        raise ValueError(f"unknown format {form!r}; wanted one of {', '.join(FORMATS)}")
    from figures.evidence import standing
    from figures.style import applied, file_content, with_source

    with applied():
        figure = module.draw(module.data())
        with_source(figure, standing(*module.CLAIMS))
        return file_content(figure, form)
