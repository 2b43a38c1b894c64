"""Counts of additions and multiplications: an algorithm runs once on scalars that record it.

The rule is that of Featherstone's tables (Rigid Body Dynamics Algorithms, 2008, table 10.1): times 0, times +-1,
plus 0 and changes of sign are free, constants are folded, a division is one multiplication. Common
subexpressions count once, and only what the outputs need counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

ZERO = 1e-13  # a constant below it is zero; constants this near to +-1 are +-1
DIGITS = 12  # significant ones, by which two constants are the same
PRODUCTS, SUMS = ("product", "scaled", "inverse"), ("sum", "difference", "shifted")


class Count(NamedTuple):
    """Operations of an algorithm."""

    additions: int
    multiplications: int

    @property
    def total(self) -> int:
        return self.additions + self.multiplications


class Trace:
    """The operations that its scalars have taken part in, each once, in an order that can be run."""

    def __init__(self):
        self._operations: list[tuple] = []
        self._index: dict[tuple, int] = {}
        self._constants: dict[int, float] = {}

    def variable(self, name: str) -> Scalar:
        """An input."""
        return self._scalar("input", name)

    def variables(self, name: str, n: int) -> list[Scalar]:
        """n inputs: name_0, name_1, ..."""
        return [self.variable(f"{name}_{i}") for i in range(n)]

    def count(self, outputs: Iterable) -> Count:
        """What it takes from the inputs to these scalars; constants among them cost nothing."""
        kinds = [self._operations[i][0] for i in self._needed(outputs)]
        return Count(sum(kind in SUMS for kind in kinds), sum(kind in PRODUCTS for kind in kinds))

    def evaluate(self, outputs: Iterable, values: Mapping[str, float]) -> np.ndarray:
        """Values of these scalars, from those of the inputs, by the recorded operations alone."""
        outputs, found = list(outputs), {}
        for i in sorted(self._needed(outputs)):
            kind, a, *more = self._operations[i]
            if kind == "input":
                found[i] = values[a]
            elif kind == "product":
                found[i] = found[a] * found[more[0]]
            elif kind == "scaled":
                found[i] = found[a] * self._constants[i]
            elif kind == "sum":
                found[i] = found[a] + found[more[0]]
            elif kind == "difference":
                found[i] = found[a] - found[more[0]]
            elif kind == "shifted":
                found[i] = found[a] + self._constants[i]
            else:
                found[i] = 1.0 / found[a]
        return np.array(
            [x.sign * found[x.index] if isinstance(x, Scalar) else float(x) for x in outputs]
        )

    def _needed(self, outputs) -> set[int]:
        needed, waiting = set(), [x.index for x in outputs if isinstance(x, Scalar)]
        while waiting:
            i = waiting.pop()
            if i in needed:
                continue
            needed.add(i)
            kind, *operands = self._operations[i]
            if kind in ("product", "sum", "difference"):
                waiting += operands
            elif kind != "input":
                waiting.append(operands[0])
        return needed

    def _scalar(self, kind: str, *operands, sign: int = 1) -> Scalar:
        operation = (kind, *operands)
        if operation not in self._index:
            self._index[operation] = len(self._operations)
            self._operations.append(operation)
        return Scalar(self, self._index[operation], sign)

    def _with_constant(self, kind: str, operand: int, constant: float, sign: int) -> Scalar:
        scalar = self._scalar(kind, operand, float(f"{constant:.{DIGITS - 1}e}"), sign=sign)
        self._constants.setdefault(scalar.index, constant)
        return scalar

    def _has(self, *operation) -> bool:
        return operation in self._index


class Scalar:
    """A number that is not known before the algorithm runs. Its sign is no operation."""

    __slots__ = ("trace", "index", "sign")

    def __init__(self, trace: Trace, index: int, sign: int):
        self.trace, self.index, self.sign = trace, index, sign

    def __neg__(self):
        return Scalar(self.trace, self.index, -self.sign)

    def __mul__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        if isinstance(other, Scalar):
            pair = sorted((self.index, other.index))
            return self.trace._scalar("product", *pair, sign=self.sign * other.sign)
        size, sign = abs(float(other)), self.sign if other > 0 else -self.sign
        if size < ZERO:
            return 0.0
        if abs(size - 1.0) < ZERO:
            return Scalar(self.trace, self.index, sign)
        kind, base, *_ = self.trace._operations[self.index]
        if kind != "scaled":
            return self.trace._with_constant("scaled", self.index, size, sign)
        size *= self.trace._constants[self.index]
        return self.trace._with_constant("scaled", base, size, sign)

    __rmul__ = __mul__

    def __add__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        if not isinstance(other, Scalar):
            if abs(other) < ZERO:
                return self
            return self.trace._with_constant(
                "shifted", self.index, self.sign * float(other), self.sign
            )
        if self.index == other.index:
            return 2.0 * self if self.sign == other.sign else 0.0
        if self.sign == other.sign:
            pair = sorted((self.index, other.index))
            return self.trace._scalar("sum", *pair, sign=self.sign)
        plus, minus = (self, other) if self.sign > 0 else (other, self)
        if self.trace._has("difference", minus.index, plus.index):
            return self.trace._scalar("difference", minus.index, plus.index, sign=-1)
        return self.trace._scalar("difference", plus.index, minus.index)

    __radd__ = __add__

    def __sub__(self, other):
        return NotImplemented if isinstance(other, np.ndarray) else self + (-other)

    def __rsub__(self, other):
        return (-self) + other

    def inverse(self):
        """1 / x."""
        return self.trace._scalar("inverse", self.index, sign=self.sign)


def inverse(x):
    """1 / x of a scalar or a plain number."""
    return x.inverse() if isinstance(x, Scalar) else 1.0 / x


def is_zero(x) -> bool:
    """Whether x is the constant 0."""
    return not isinstance(x, Scalar) and abs(x) < ZERO
