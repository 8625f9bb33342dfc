"""The only registry: the theorems in the paper's order, and what the command line offers besides."""

from __future__ import annotations

from constructions import theorem_1_operator_count, theorem_3_polynomial_filter
from constructions.builders import ATTENTIONS, BUILDERS
from constructions.examples import EXAMPLES
from constructions.stated import APPENDIX_C, APPENDIX_D, SECTION_5
from iha_theory.book import Book
from iha_theory.claims import Theorem

CATALOGUE: tuple[Theorem, ...] = (
    theorem_1_operator_count.THEOREM,
    theorem_3_polynomial_filter.THEOREM,
    SECTION_5,
    APPENDIX_C,
    APPENDIX_D,
)
BOOK = Book(CATALOGUE, EXAMPLES, BUILDERS, ATTENTIONS)
