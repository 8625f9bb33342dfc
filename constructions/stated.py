"""What the paper states with a number or in an appendix and this book does not check yet: visible, not hidden."""

from __future__ import annotations

from iha_theory.claims import Theorem

APPENDIX_D = Theorem(
    number="Appendix D",
    title="Relation composition",
    source="Appendix D",
    statement="Trained on relation composition with two and three hops, IHA is more accurate than multi-head and "
    "2-simplicial attention.",
)
SECTION_5 = Theorem(
    number="Section 5",
    title="Language models of 2.4B parameters",
    source="§5",
    statement="At matched FLOPs, IHA improves long-context retrieval and reasoning over global attention.",
)
