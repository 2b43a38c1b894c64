"""Several arrays in the memory of one: a compiled function takes one array faster than ten.

In a kernel these views hold no reference: what they look at must outlive them.
"""

from __future__ import annotations

import numpy as np
from numba import carray, farray, types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray


def dense(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """The array, or a copy whose numbers lie row after row: what views take for granted."""
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def view(store, at, shape):
    """The numbers of ``store`` (m,) from ``at`` on as an array of that shape, without a copy."""
    size = 1
    for extent in shape:
        size *= extent
    return store[at : at + size].reshape(shape)


def rows(table, first, count):
    """Rows of a contiguous table (m, k)."""
    return table[first : first + count]


def columns(matrix, first, count):
    """Columns of a matrix (k, m) in Fortran order, in which they lie together."""
    return matrix[:, first : first + count]


@intrinsic
def _address(typing, store, at):
    signature = types.CPointer(store.dtype)(store, types.intp)

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.gep(array.data, [arguments[1]])

    return signature, generate


@overload(view)
def _view(store, at, shape):
    # numba's own slices count references and its reshape is a call: a microsecond for ten arrays.
    # Not inlined: numba's removal of dead code, which follows that, takes what is only written for dead.
    return lambda store, at, shape: carray(_address(store, at), shape)


@overload(rows)
def _rows(table, first, count):
    return lambda table, first, count: carray(
        _address(table, first * table.shape[1]), (count, table.shape[1])
    )


@overload(columns)
def _columns(matrix, first, count):
    return lambda matrix, first, count: farray(
        _address(matrix, first * matrix.shape[0]), (matrix.shape[0], count)
    )
