"""Is this layer really Interleaved Head Attention, and more than multi-head attention?

A project adds the kit to its tests in five lines::

    import pytest
    from iha_theory import conformance

    @pytest.mark.parametrize("row", list(conformance.rows(MyLayer(64, 4))), ids=lambda row: row.key)
    def test_my_layer_is_iha(row):
        assert row.conforms, str(row)

``audit`` gives the same as a report; ``iha-theory audit package.module:factory`` prints it.
"""

from iha_theory.conformance.adapter import Adapter
from iha_theory.conformance.findings import Finding, Report
from iha_theory.conformance.kit import KEYS, PROPERTIES, audit, rows
from iha_theory.conformance.weights import Weights

__all__ = ["KEYS", "PROPERTIES", "Adapter", "Finding", "Report", "Weights", "audit", "rows"]
