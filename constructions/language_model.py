"""Section 5.1: does the language model of the paper have 2.4B parameters, and what does the mixing add?

Statement. Width 2560, 26 layers, 20 heads of 128, an FFN of 10,240 and a vocabulary of 128,256 make
2,373,194,240 parameters with an FFN of two matrices and one matrix for input and output embeddings (norms
included, no biases).

Idea. A layer has 4D^2 parameters in attention (from the axes, with the output projection), 2DF or 3DF in the
FFN (plain or gated) and 2D in two norms; the embeddings have VD, or 2VD with an output matrix of their own; a
last norm has D. An IHA layer adds 4H^2 P for its mixing and collapse.

Checked: the closed form as a polynomial identity; at the paper's sizes against the shapes of all arrays
(arrays of one number stretched to their shape: no memory is taken); which of the readings rounds to 2.4B.
Nothing is trained.

Errata: what the sizes leave open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from sympy import ZZ
from sympy.polys.rings import ring

from iha_theory.claims import Case, Claim, Erratum, Mutant, Relation, Scope, Section, Theorem, Verdict
from iha_theory.count import counted, parameters
from iha_theory.layer import AXES, IHA, MIXING
from iha_theory.scalars import INTEGERS, POLYNOMIALS, Domain

#: What "2.4B" means: rounded to one decimal of a billion.
LEAST, MOST = 2_350_000_000, 2_449_999_999
EMBEDDINGS = ("shared", "separate", "none")


@dataclass(frozen=True)
class LanguageModel:
    """A decoder; the sizes are integers or symbols, and its width is ``heads`` times ``key``.

    Attributes: matrices: of an FFN, 2 (plain) or 3 (gated). embeddings: ``shared`` by input and output,
        ``separate``, or ``none``
            (not counted). pseudo: P. mixed_layers: how many layers are IHA.
    """

    layers: Any = 26
    heads: Any = 20
    key: Any = 128
    ffn: Any = 10_240
    vocabulary: Any = 128_256
    matrices: Any = 2
    embeddings: str = "shared"
    pseudo: Any = 1
    mixed_layers: Any = 0

    @property
    def width(self) -> Any:
        return self.heads * self.key

    @property
    def sizes(self) -> dict[str, Any]:
        """The axes of one attention layer."""
        return {"source": self.heads, "head": self.heads, "out": self.heads, "pseudo": self.pseudo,
                "model": self.width,
                "key": self.key, "value": self.key}

    @property
    def attention(self) -> Any:
        """One attention layer with its output projection, without mixing."""
        return parameters(self.sizes, mixed=False) + self.width * self.heads * self.key

    @property
    def mixing(self) -> Any:
        """What mixing and collapse add to one IHA layer."""
        return parameters(self.sizes) - parameters(self.sizes, mixed=False)

    @property
    def parts(self) -> dict[str, Any]:
        """Parameters of each kind, of all layers."""
        copies = {"shared": 1, "separate": 2, "none": 0}[self.embeddings]
        return {"embeddings": copies * self.vocabulary * self.width,
                "attention": self.layers * self.attention,
                "mixing": self.mixed_layers * self.mixing,
                "FFN": self.layers * self.matrices * self.width * self.ffn,
                "norms": (2 * self.layers + 1) * self.width}

    @property
    def total(self) -> Any:
        return sum(self.parts.values())

    def shapes(self) -> Iterator[np.ndarray | IHA]:
        """Every array of the model, stretched from one number, and the attention layers as :class:`IHA`."""
        def array(*shape: int) -> np.ndarray:
            return np.broadcast_to(np.int8(0), shape)

        for _ in range({"shared": 1, "separate": 2, "none": 0}[self.embeddings]):
            yield array(self.vocabulary, self.width)
        for layer in range(self.layers):
            names = AXES if layer < self.mixed_layers else [name for name in AXES if name not in MIXING]
            yield IHA(**{name: array(*(self.sizes[axis] for axis in AXES[name].split())) for name in names})
            yield array(self.heads, self.key, self.width)
            for _ in range(self.matrices):
                yield array(self.width, self.ffn)
            yield array(2, self.width)
        yield array(self.width)

    def counted(self) -> int:
        """The entries of all arrays."""
        return sum(counted(part) if isinstance(part, IHA) else part.size for part in self.shapes())


#: Every reading of the listed sizes: the kind of FFN and of embeddings.
READINGS = tuple(LanguageModel(matrices=matrices, embeddings=kind) for matrices,
                 kind in product((2, 3), EMBEDDINGS))


@dataclass(frozen=True)
class Readings:
    """Models of the paper's sizes, one for each reading, and what was counted in their shapes."""

    models: tuple[LanguageModel, ...]
    entries: tuple[int, ...]

    @property
    def totals(self) -> list[int]:
        return [model.total for model in self.models]

    @property
    def rounds(self) -> list[int]:
        """1 where the total rounds to 2.4B."""
        return [int(LEAST <= total <= MOST) for total in self.totals]

    @property
    def is_plain_and_shared(self) -> list[int]:
        """1 for the reading with two matrices and shared embeddings."""
        return [int(model.matrices == 2 and model.embeddings == "shared") for model in self.models]


def _readings(*, domain: Domain, models: tuple[LanguageModel, ...]) -> Readings:
    return Readings(models, tuple(model.counted() for model in models))


SIZE = Erratum(
    "sec5-size", "gap", "Section 5.1, the model's size",
    "Printed: 2.4B parameters, with the width, layers, heads, FFN size and vocabulary. Whether the FFN is "
    "gated and whether input and output share their embeddings is left open, and the sizes give 2.0B to "
    "3.4B. 2.4B come out for one reading only: an FFN of two matrices and shared embeddings, 2,373,194,240 "
    "parameters with norms and without biases.",
    printed=Claim("size-printed", "the sizes give 2.4B (2.35B to 2.45B), whatever the FFN and the embeddings",
                  Relation.AT_MOST, lambda i: i.totals, lambda i: MOST, Verdict.FAILS),
    corrected=(Claim("size", "exactly the reading with two matrices and shared embeddings rounds to 2.4B",
                     Relation.EQUAL,
                     lambda i: i.rounds, lambda i: i.is_plain_and_shared),),
)
READ = Section(
    title="the readings of the listed sizes",
    instance=_readings,
    cases=(Case("26 layers of 20 heads of 128, FFN 10240, V 128256", INTEGERS, Scope.SIZE,
                {"models": READINGS}),),
    claims=(
        Claim("size-built", "the arrays of each reading have as many entries as the closed form says",
              Relation.EQUAL,
              lambda i: i.entries, lambda i: i.totals),
        Claim("size-first", "with two matrices and shared embeddings it has 2,373,194,240", Relation.EQUAL,
              lambda i: i.entries[0], lambda i: 2_373_194_240),
    ),
    errata=(SIZE,),
    mutants=(
        Mutant("one layer fewer", lambda i: _readings(domain=INTEGERS, models=tuple(
            replace(model, layers=model.layers - 1) for model in i.models)), ("size-first",)),
        Mutant("one layer not built", lambda i: replace(i, entries=tuple(entry - 1 for entry in i.entries)),
               ("size-built",)),
        Mutant("half as many layers", lambda i: replace(i, models=tuple(
            replace(model, layers=13) for model in i.models)), ("size", "size-printed")),
    ),
)


def _symbolic(*, domain: Domain) -> LanguageModel:
    _, layers, heads, key, ffn, vocabulary, pseudo, mixed = ring("n, H, d, F, V, P, m", ZZ)
    return LanguageModel(layers, heads, key, ffn, vocabulary, 2, "shared", pseudo, mixed)


CLOSED = Section(
    title="the closed form",
    instance=_symbolic,
    cases=(Case("n layers, m of them IHA; H, d, F, V, P symbolic", POLYNOMIALS, Scope.ALL),),
    claims=(
        Claim("size-attention", "attention with its output projection has 4D^2 parameters, D = Hd",
              Relation.EQUAL,
              lambda i: i.attention, lambda i: 4 * (i.heads * i.key) ** 2),
        Claim("size-mixing", "mixing and collapse add 4H^2 P to an IHA layer", Relation.EQUAL,
              lambda i: i.mixing,
              lambda i: 4 * i.heads**2 * i.pseudo),
        Claim("size-total", "two matrices, shared embeddings: VD + n(4D^2 + 2DF + 2D) + D + 4mH^2 P",
              Relation.EQUAL,
              lambda i: i.total, lambda i: i.vocabulary * i.heads * i.key + i.layers * (
                  4 * (i.heads * i.key) ** 2 + 2 * i.heads * i.key * (i.ffn + 1)) + i.heads * i.key
              + 4 * i.mixed_layers * i.heads**2 * i.pseudo),
    ),
    mutants=(Mutant("3 H^2 P for 4 H^2 P", lambda i: _Fewer(**vars(i)), ("size-mixing", "size-total")),
             Mutant("without the output projection", lambda i: _WithoutOutput(**vars(i)),
                    ("size-attention", "size-total"))),
)


class _Fewer(LanguageModel):
    """A wrong count: 3H^2 P for 4H^2 P."""

    @property
    def mixing(self) -> Any:
        return super().mixing - self.heads**2 * self.pseudo


class _WithoutOutput(LanguageModel):
    """A wrong count: no output projection."""

    @property
    def attention(self) -> Any:
        return super().attention - self.width**2


MIXED = Section(
    title="what the mixing adds",
    instance=lambda *, domain, mixed, pseudo: Readings(
        (LanguageModel(pseudo=pseudo, mixed_layers=mixed),), (LanguageModel(pseudo=pseudo,
                                                                            mixed_layers=mixed).counted(),)),
    cases=tuple(Case(f"{mixed} IHA layers, P={pseudo}", INTEGERS, Scope.SIZE,
                     {"mixed": mixed, "pseudo": pseudo})
                for mixed, pseudo in ((26, 2), (26, 4), (26, 20), (21, 2), (20, 2))),
    claims=(
        Claim("mixing-built", "the arrays have 1600 P entries more for each IHA layer", Relation.EQUAL,
              lambda i: i.entries,
              lambda i: [2_373_194_240 + 1600 * m.pseudo * m.mixed_layers for m in i.models]),
        Claim("mixing-share", "that is under 1/2000 of the model for P up to 20", Relation.LESS,
              lambda i: [2000 * m.mixed_layers * m.mixing for m in i.models], lambda i: i.entries),
    ),
    mutants=(Mutant("one mixing entry fewer", lambda i: replace(i, entries=tuple(e - 1 for e in i.entries)),
                    ("mixing-built",)),
             Mutant("P = 2000", lambda i: replace(i, models=tuple(replace(m, pseudo=2000) for m in i.models)),
                    ("mixing-share",))),
)

THEOREM = Theorem(
    number="Section 5.1",
    title="The language model's size",
    source="§5.1",
    statement="The listed sizes make 2.37B parameters with an FFN of two matrices and shared embeddings; "
              "mixing adds 4H^2 P to a layer.",
    sections=(READ, CLOSED, MIXED),
    headline=("size-total",),
)
