"""The machine-checked theorems behind the numbered results: what each says in words, its name and its file.

The files stand in ``proofs/``; ``proofs/README.md`` says how to read them. A record counts as evidence only while its
file is as the proof checker accepted it (:mod:`iha_theory.proofs`).
"""

from __future__ import annotations

from pathlib import Path

from iha_theory.claims import Proof

FOLDER = Path(__file__).parent.parent / "proofs"


def _proofs(file: str, said: dict[str, str]) -> tuple[Proof, ...]:
    return tuple(Proof(name, file, says, FOLDER) for name, says in said.items())


THEOREM_3 = (
    *_proofs("Theorem3.v", {
        "theorem3": "for every commutative ring, N, d, H, k <= H^2, A and X: linear IHA with H heads and P = H outputs "
        "[X, AX, ..., A^(k-1) X] in its first k d columns",
    }),
)
