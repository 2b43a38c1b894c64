"""Several arrays in the memory of one: a compiled function takes one array faster than ten."""

from __future__ import annotations

from numba import carray, types
from numba.extending import intrinsic, overload


def view(store, at, shape):
    """The numbers of ``store`` (m,) from ``at`` on as an array of that shape, without a copy.

    In a kernel it holds no reference: the store must outlive it.
    """
    size = 1
    for extent in shape:
        size *= extent
    return store[at : at + size].reshape(shape)


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
