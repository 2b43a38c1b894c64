"""Several arrays in the memory of one: a compiled function takes one array faster than ten.

In a kernel these views hold no reference: the array they look into must outlive them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, farray, types
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload
from numpy.typing import ArrayLike, NDArray

from contact_id_controller.kernels.compile import bare_kernel

_FLOAT = np.dtype(np.float64)


def dense(array: ArrayLike) -> NDArray[np.float64]:
    """The array itself if kernels can take it, else a copy: float64, row-major, aligned, writeable.

    Views rely on row-major order, and numba compiles a kernel again for every other kind of array.
    """
    # ``is``: comparing a dtype with a type costs more than all the rest.
    if type(array) is np.ndarray and array.dtype is _FLOAT and array.flags.carray:
        return array
    return np.array(array, dtype=np.float64, order="C")


def view(store: np.ndarray, at: int, shape: tuple[int, ...]) -> np.ndarray:
    """View of ``store`` from element ``at`` on as an array of that shape, row-major, without a copy."""
    size = 1
    for extent in shape:
        size *= extent
    return store.reshape(-1)[at : at + size].reshape(shape)


def rows(table: np.ndarray, first: int, count: int) -> np.ndarray:
    """Rows of a contiguous table (m, k)."""
    return table[first : first + count]


def columns(matrix: np.ndarray, first: int, count: int) -> np.ndarray:
    """Columns of a matrix (k, m) in Fortran order, in which they lie together."""
    return matrix[:, first : first + count]


@bare_kernel
def keep(array):
    """Keep an array until here: views of it hold no reference, so that a kernel would free it before they are used."""
    return array.shape[0]


@intrinsic
def _address(typing, store, at):
    """numba intrinsic: pointer to element ``at`` of a one-dimensional array, at which a view begins."""
    signature = types.CPointer(store.dtype)(store, types.intp)

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.gep(array.data, [arguments[1]])

    return signature, generate


@overload(view)
def _view(store, at, shape):
    # numba's own slices count references and its reshape is a call: a microsecond for ten arrays.
    # Not inlined: numba's removal of dead code, which follows that, takes what is only written for dead.
    _refuse_gaps(store, "C")
    return lambda store, at, shape: carray(_address(store, at), shape)


@overload(rows)
def _rows(table, first, count):
    _refuse_gaps(table, "C")
    return lambda table, first, count: carray(
        _address(table, first * table.shape[1]), (count, table.shape[1])
    )


@overload(columns)
def _columns(matrix, first, count):
    if matrix.layout == "C":  # what numba calls a matrix with a single row, or a single column
        return lambda matrix, first, count: matrix[:, first : first + count]
    _refuse_gaps(matrix, "F")
    return lambda matrix, first, count: farray(
        _address(matrix, first * matrix.shape[0]), (matrix.shape[0], count)
    )


def _refuse_gaps(array: Any, layout: str) -> None:
    """Raise at compile time for a view of an array that may not be contiguous."""
    if array.layout != layout:
        raise TypingError(f"a view needs an array of layout {layout}, got {array}: see views.dense")
