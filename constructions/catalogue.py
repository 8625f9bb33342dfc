"""The only registry: the theorems in the paper's order, and what the command line offers besides."""

from __future__ import annotations

from constructions import (
    accounts,
    appendix_c_flops,
    crossovers,
    language_model,
    lower_bounds,
    theorem_1_operator_count,
    theorem_2_superset,
    theorem_3_polynomial_filter,
    theorem_4_cpm3,
)
from constructions.account_tables import TABLES
from constructions.bound_report import bound_report
from constructions.builders import ATTENTIONS, BUILDERS
from constructions.device_instances import device_cases
from constructions.examples import EXAMPLES
from constructions.stated import APPENDIX_D, SECTION_5
from iha_theory.book import Book
from iha_theory.claims import Theorem

CATALOGUE: tuple[Theorem, ...] = (
    theorem_1_operator_count.THEOREM,
    theorem_2_superset.THEOREM,
    theorem_3_polynomial_filter.THEOREM,
    theorem_4_cpm3.THEOREM,
    lower_bounds.THEOREM,
    SECTION_5,
    language_model.THEOREM,
    appendix_c_flops.THEOREM,
    APPENDIX_D,
    accounts.THEOREM,
    crossovers.THEOREM,
)
BOOK = Book(CATALOGUE, EXAMPLES, BUILDERS, ATTENTIONS, TABLES, bound_report, device_cases)
