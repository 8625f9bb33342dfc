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
    )
    from iha_theory.attention import (
        flat_causal as flat_causal,
    )
    from iha_theory.attention import (
        hard as hard,
    )
    from iha_theory.attention import (
        linear as linear,
    )
    from iha_theory.attention import (
        normalized as normalized,
    )
    from iha_theory.attention import (
        padded as padded,
    )
    from iha_theory.attention import (
        pattern as pattern,
    )
    from iha_theory.attention import (
        rotary as rotary,
    )
    from iha_theory.attention import (
        softmax as softmax,
    )
    from iha_theory.attention import (
        token_causal as token_causal,
    )
    from iha_theory.attention import (
        windowed as windowed,
    )
    from iha_theory.claims import (
        Case as Case,
    )
    from iha_theory.claims import (
        Claim as Claim,
    )
    from iha_theory.claims import (
        Erratum as Erratum,
    )
    from iha_theory.claims import (
        Evidence as Evidence,
    )
    from iha_theory.claims import (
        Means as Means,
    )
    from iha_theory.claims import (
        Relation as Relation,
    )
    from iha_theory.claims import (
        Request as Request,
    )
    from iha_theory.claims import (
        Scope as Scope,
    )
    from iha_theory.claims import (
        Section as Section,
    )
    from iha_theory.claims import (
        Theorem as Theorem,
    )
    from iha_theory.claims import (
        Verdict as Verdict,
    )
    from iha_theory.claims import (
        Witness as Witness,
    )
    from iha_theory.comparison import compare as compare
    from iha_theory.count import ceil_sqrt as ceil_sqrt
    from iha_theory.count import counted as counted
    from iha_theory.count import parameters as parameters
    from iha_theory.graphs import Graph as Graph
    from iha_theory.graphs import load_graph as load_graph
    from iha_theory.layer import (
        AXES as AXES,
    )
    from iha_theory.layer import (
        IHA as IHA,
    )
    from iha_theory.layer import (
        forward as forward,
    )
    from iha_theory.layer import (
        multi_head as multi_head,
    )
    from iha_theory.layer import (
        pseudo_heads as pseudo_heads,
    )
    from iha_theory.rank import (
        exact_rank as exact_rank,
    )
    from iha_theory.rank import (
        is_nonzero_minor as is_nonzero_minor,
    )
    from iha_theory.rank import (
        nonzero_minor as nonzero_minor,
    )
    from iha_theory.residues import Residues as Residues
    from iha_theory.scalars import (
        BALLS as BALLS,
    )
    from iha_theory.scalars import (
        FLOATS as FLOATS,
    )
    from iha_theory.scalars import (
        INTEGERS as INTEGERS,
    )
    from iha_theory.scalars import (
        POLYNOMIALS as POLYNOMIALS,
    )
    from iha_theory.scalars import (
        RATIONALS as RATIONALS,
    )
    from iha_theory.scalars import (
        RESIDUES as RESIDUES,
    )
    from iha_theory.scalars import (
        Domain as Domain,
    )
    from iha_theory.verification import is_sound as is_sound
    from iha_theory.verification import verify as verify
    from iha_theory.weights_file import load_weights as load_weights
    from iha_theory.weights_file import save_weights as save_weights

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
