"""The language: what a layer, a scalar, an attention operator, a claim and a piece of evidence are.

>>> import numpy as np
>>> from iha_theory import forward, linear, multi_head
>>> identity = np.eye(2)[None]
>>> layer = multi_head(identity, identity, identity)      # W_Q, W_K, W_V: (source, model, key or value)
>>> forward(layer, np.array([[1.0, 0.0], [0.0, 2.0]]), linear)
array([[1., 0.],
       [0., 8.]])

The names below are public; everything else is private. They are resolved on first use, so that importing the package
costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iha_theory.attention import (
        FormalScore as FormalScore,
        flat_causal as flat_causal,
        hard as hard,
        linear as linear,
        normalized as normalized,
        padded as padded,
        pattern as pattern,
        rotary as rotary,
        softmax as softmax,
        token_causal as token_causal,
        windowed as windowed,
    )
    from iha_theory.claims import (
        Case as Case,
        Claim as Claim,
        Erratum as Erratum,
        Evidence as Evidence,
        Means as Means,
        Relation as Relation,
        Request as Request,
        Scope as Scope,
        Section as Section,
        Theorem as Theorem,
        Verdict as Verdict,
        Witness as Witness,
    )
    from iha_theory.comparison import compare as compare
    from iha_theory.count import ceil_sqrt as ceil_sqrt, counted as counted, parameters as parameters
    from iha_theory.graphs import Graph as Graph, load_graph as load_graph
    from iha_theory.layer import (
        AXES as AXES,
        IHA as IHA,
        forward as forward,
        multi_head as multi_head,
        pseudo_heads as pseudo_heads,
    )
    from iha_theory.rank import (
        exact_rank as exact_rank,
        is_nonzero_minor as is_nonzero_minor,
        nonzero_minor as nonzero_minor,
    )
    from iha_theory.residues import Residues as Residues
    from iha_theory.scalars import (
        BALLS as BALLS,
        FLOATS as FLOATS,
        INTEGERS as INTEGERS,
        POLYNOMIALS as POLYNOMIALS,
        RATIONALS as RATIONALS,
        RESIDUES as RESIDUES,
        Domain as Domain,
    )
    from iha_theory.verification import is_sound as is_sound, verify as verify
    from iha_theory.weights_file import load_weights as load_weights, save_weights as save_weights

_HOME = {
    "attention": "FormalScore flat_causal hard linear normalized padded pattern rotary softmax token_causal windowed",
    "claims": "Case Claim Erratum Evidence Means Relation Request Scope Section Theorem Verdict Witness",
    "comparison": "compare",
    "count": "ceil_sqrt counted parameters",
    "graphs": "Graph load_graph",
    "layer": "AXES IHA forward multi_head pseudo_heads",
    "rank": "exact_rank is_nonzero_minor nonzero_minor",
    "residues": "Residues",
    "scalars": "BALLS FLOATS INTEGERS POLYNOMIALS RATIONALS RESIDUES Domain",
    "verification": "is_sound verify",
    "weights_file": "load_weights save_weights",
}
_MODULE = {name: module for module, names in _HOME.items() for name in names.split()}
__all__ = sorted(_MODULE)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'iha_theory' has no attribute {name!r}")
    value = getattr(import_module(f"iha_theory.{_MODULE[name]}"), name)
    # A submodule of the same name would otherwise hide the function.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
