"""What the powers I, A, ..., A^(k-1) of a matrix are to one another, exactly and with certificates.

Three numbers decide how few heads can produce the bank (see :mod:`constructions.lower_bounds`):

    s    the dimension of the span of the powers: min(k, degree of the minimal polynomial);
    rho  the number of proportionality classes among the non-zero powers;
    tau  the least t >= 1 with A^t a multiple of A^(t-1).

The certificates and their checkers are in :mod:`constructions.power_certificates`. Everything is computed for the integer
matrix M = qA, q the common denominator: its powers are multiples of those of A, so that the three numbers are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import flint
import numpy as np

from constructions.power_certificates import Apart, Dependence, Independence, Proportional, is_dependence
from iha_theory.rank import Minor, exact_rank, integer_matrix, nonzero_minor, primitive
from iha_theory.scalars import object_array

_TRIES = 40


@dataclass(frozen=True)
class Powers:
    """The powers of a matrix, up to the k-th, and their relations.

    Raises:
        ValueError: A is not square, not exact, or k is below 1.
    """

    a: np.ndarray
    k: int

    def __post_init__(self) -> None:
        if self.a.ndim != 2 or self.a.shape[0] != self.a.shape[1] or not self.a.size:
            raise ValueError(f"A has shape {self.a.shape}; wanted a square matrix (n, n), n >= 1")
        if self.a.dtype != object:
            raise ValueError("A has floating-point entries; bounds want exact ones (no symmetric normalisation)")
        if self.k < 1:
            raise ValueError(f"k: got {self.k}, wanted at least 1 power")

    @property
    def n(self) -> int:
        return self.a.shape[0]

    @cached_property
    def matrix(self) -> flint.fmpz_mat:
        """M = qA."""
        return integer_matrix(self.a)[0]

    @cached_property
    def scale(self) -> int:
        """q: M = qA."""
        return integer_matrix(self.a)[1]

    @cached_property
    def powers(self) -> list[flint.fmpz_mat]:
        """M^0, ..., M^(k-1)."""
        found = [flint.fmpz_mat([[int(i == j) for j in range(self.n)] for i in range(self.n)])]
        while len(found) < self.k:
            found.append(found[-1] * self.matrix)
        return found

    def krylov(self, x: tuple[int, ...], size: int) -> np.ndarray:
        """[x, Mx, ..., M^(size-1) x]: (n, size)."""
        columns = [flint.fmpz_mat(self.n, 1, list(x))]
        while len(columns) < size:
            columns.append(self.matrix * columns[-1])
        return object_array([[column[row, 0] for column in columns] for row in range(self.n)])

    @cached_property
    def _found(self) -> tuple[Independence, Dependence | None]:
        source = np.random.default_rng(0)
        for attempt in range(_TRIES):
            x = tuple(1 for _ in range(self.n)) if not attempt else tuple(
                int(v) for v in source.integers(-9, 10, self.n))
            columns = self.krylov(x, min(self.k, self.n + 1))
            size = exact_rank(columns)
            if size == 0:
                continue
            independence = Independence(x, nonzero_minor(columns[:, :size]))
            if size == self.k:
                return independence, None
            dependence = self._dependence(columns[:, : size + 1], independence.minor)
            if is_dependence(self.matrix, dependence):
                return independence, dependence
        raise ValueError(f"no cyclic vector for the powers was found in {_TRIES} draws; this should not happen")

    @staticmethod
    def _dependence(columns: np.ndarray, minor: Minor) -> Dependence:
        rows = list(minor.rows)
        size = len(rows)
        left = flint.fmpz_mat([[int(v) for v in row] for row in columns[rows, :size]])
        right = flint.fmpz_mat(size, 1, [int(v) for v in columns[rows, size]])
        solution = flint.fmpq_mat(left).solve(flint.fmpq_mat(right))
        return Dependence(tuple(solution[i, 0] for i in range(size)))

    @property
    def independence(self) -> Independence:
        """The certificate that s powers are independent."""
        return self._found[0]

    @property
    def dependence(self) -> Dependence | None:
        """The certificate that no more are; None when s = k."""
        return self._found[1]

    @property
    def s(self) -> int:
        """The dimension of the span of the k powers."""
        return self.independence.size

    @cached_property
    def classes(self) -> tuple[Proportional, ...]:
        """Each of the k powers as a multiple of the first power of its class."""
        if self.s == self.k:
            return tuple(Proportional(i, i, flint.fmpq(1)) for i in range(self.k))
        first: dict[tuple[int, ...], tuple[int, int]] = {}
        found: list[Proportional] = []
        for power, matrix in enumerate(self.powers):
            direction, factor = primitive(matrix)
            if not factor:
                found.append(Proportional(power, power, flint.fmpq(0)))
                continue
            representative, base = first.setdefault(direction, (power, factor))
            found.append(Proportional(power, representative, flint.fmpq(factor, base)))
        return tuple(found)

    @property
    def representatives(self) -> tuple[int, ...]:
        """The first power of each class of non-zero powers."""
        return tuple(c.power for c in self.classes if c.factor != 0 and c.power == c.representative)

    @property
    def rho(self) -> int:
        """The number of classes of non-zero powers."""
        return len(self.representatives)

    @cached_property
    def tau(self) -> int | None:
        """The least t in 1, ..., k - 1 with A^t a multiple of A^(t-1); None if there is none below k."""
        for before, after in pairwise(self.classes):
            if after.factor == 0 or after.representative == before.representative:
                return after.power
        return None

    @property
    def is_scalar(self) -> bool:
        """Whether A is a multiple of the identity."""
        diagonal = {self.matrix[i, i] for i in range(self.n)}
        return len(diagonal) == 1 and all(self.matrix[i, j] == 0 for i in range(self.n) for j in range(self.n) if i != j)

    def apart(self, pairs: Iterator[tuple[int, int]]) -> tuple[Apart, ...]:
        """A certificate for each pair of powers that they are not proportional.

        Raises:
            ValueError: a pair is proportional.
        """
        found: list[Apart] = []
        for first, second in pairs:
            p, q = self.powers[first].entries(), self.powers[second].entries()
            pivot = next((i for i, entry in enumerate(p) if entry != 0), None)
            other = None if pivot is None else next((i for i in range(len(p)) if p[pivot] * q[i] != p[i] * q[pivot]), None)
            if pivot is None or other is None:
                raise ValueError(f"powers {first} and {second} are proportional")
            found.append(Apart(first, second, (pivot, other)))
        return tuple(found)

    def classes_apart(self) -> tuple[Apart, ...]:
        """Every two representatives are not proportional; empty when independence already says so."""
        return () if self.s == self.k else self.apart(combinations(self.representatives, 2))

    def neighbours_apart(self) -> tuple[Apart, ...]:
        """A^i and A^(i+1) are not proportional, for i + 1 < min(k, tau)."""
        if self.s == self.k:
            return ()
        limit = min(self.k, self.tau or self.k)
        return self.apart((i, i + 1) for i in range(limit - 1))

    @cached_property
    def in_basis(self) -> np.ndarray:
        """(k, s) coefficients: A^i as a combination of I, A, ..., A^(s-1), exactly."""
        rows = [[flint.fmpq(int(i == j)) for j in range(self.s)] for i in range(min(self.s, self.k))]
        dependence = self.dependence
        if dependence is not None:
            # M^s = sum c_i M^i says A^s = sum c_i q^(i-s) A^i.
            last = [c * flint.fmpq(self.scale) ** (i - self.s) for i, c in enumerate(dependence.coefficients)]
            while len(rows) < self.k:
                before = rows[-1]
                shifted = [flint.fmpq(0), *before[:-1]]
                rows.append([entry + before[-1] * c for entry, c in zip(shifted, last, strict=True)])
        return object_array(rows)
