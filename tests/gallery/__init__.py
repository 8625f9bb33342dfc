"""The gallery of layers that the conformance kit is tried on: wrong ones, whose differing rows are written down, and
right ones, on which there is nothing to be said."""

from tests.gallery import conduct, formula, sight, starts
from tests.gallery.entry import Fault, Right
from tests.gallery.plain import Plain
from tests.gallery.right import RIGHT

FAULTS: tuple[Fault, ...] = formula.FAULTS + starts.FAULTS + sight.FAULTS + conduct.FAULTS

__all__ = ["FAULTS", "RIGHT", "Fault", "Plain", "Right"]
