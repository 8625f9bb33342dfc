"""The book: one module for each numbered result of the paper, with explicit weights, claims and errata.

>>> from iha_theory import load_graph, forward, linear
>>> from constructions import polynomial_filter
>>> karate = load_graph("karate")
>>> layer = polynomial_filter(karate.adjacency, k=9, d=2)      # 3 heads, 3 pseudo-heads each
>>> layer.sizes["out"], layer.sizes["pseudo"]
(3, 3)

The names below are public; they are resolved on first use. ``CATALOGUE`` is the ordered tuple of all theorems, and the
only registry.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constructions.blocks import Cover as Cover
    from constructions.blocks import full_cover as full_cover
    from constructions.blocks import tiled_cover as tiled_cover
    from constructions.catalogue import BOOK as BOOK
    from constructions.catalogue import CATALOGUE as CATALOGUE
    from constructions.counting import (
        count_matches as count_matches,
    )
    from constructions.counting import (
        counting_mlp as counting_mlp,
    )
    from constructions.counting import (
        counting_relu_mlp as counting_relu_mlp,
    )
    from constructions.inclusions import free_inclusion as free_inclusion
    from constructions.inclusions import inclusion as inclusion
    from constructions.repeated_tokens import separating_layer as separating_layer
    from constructions.shifts import cyclic_shifts as cyclic_shifts
    from constructions.shifts import cyclic_shifts_mha as cyclic_shifts_mha
    from constructions.theorem_1_operator_count import polynomial_filter_mha as polynomial_filter_mha
    from constructions.theorem_3_polynomial_filter import polynomial_filter as polynomial_filter

_HOME = {
    "blocks": "Cover full_cover tiled_cover",
    "catalogue": "BOOK CATALOGUE",
    "counting": "count_matches counting_mlp counting_relu_mlp",
    "inclusions": "free_inclusion inclusion",
    "repeated_tokens": "separating_layer",
    "shifts": "cyclic_shifts cyclic_shifts_mha",
    "theorem_1_operator_count": "polynomial_filter_mha",
    "theorem_3_polynomial_filter": "polynomial_filter",
}
_MODULE = {name: module for module, names in _HOME.items() for name in names.split()}
__all__ = sorted(_MODULE)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'constructions' has no attribute {name!r}")
    value = getattr(import_module(f"constructions.{_MODULE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
