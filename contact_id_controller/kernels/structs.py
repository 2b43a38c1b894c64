"""Structs: named values that a kernel takes as one argument, ``period.gaps`` instead of the 27th of 37 arrays.

Calling a compiled function with forty arrays takes 2.2 us, with one struct of them .5 us.
A struct is also a Python object: its values are attributes there too, the same arrays as in kernels.
Arrays are changed in place by either side. Numbers are fixed; ``changed`` makes another struct.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numba
from numba.core import cgutils, types
from numba.experimental import structref
from numba.extending import intrinsic

_Struct = TypeVar("_Struct", bound="Struct")


class StructType(types.StructRef):  # type: ignore[name-defined]
    """numba type of a struct: names and types of its values. Each struct registers its own."""


class Struct(structref.StructRefProxy):
    """Python side of a struct. Subclasses annotate their fields and define their packing:

        class Pair(Struct):
            first: np.ndarray
            second: float

        @structref.register
        class PairType(StructType): ...

        _pack = packing(Pair, PairType)

        @kernel
        def _packed(values):
            return _pack(values)

        Pair.packed = staticmethod(_packed)

    The kernel is in the subclass' file, so that its cache changes with the fields.
    """

    packed: Callable[[tuple[Any, ...]], Any]
    # What numba reads of each argument, as the slot itself: its own property is a Python call, two for each kernel.
    _numba_type_ = structref.StructRefProxy._type

    def __new__(cls: type[_Struct], **values: Any) -> _Struct:
        """Make a struct of all its fields.

        Raises:
            TypeError: a field is missing, or one is given that the struct lacks.
        """
        names = fields(cls)
        if values.keys() != set(names):
            wrong = sorted(values.keys() ^ set(names))
            raise TypeError(f"{cls.__name__} lacks these fields, or they are missing: {wrong}")
        if numba.config.DISABLE_JIT:  # kernels are Python functions and take the attributes
            made: _Struct = object.__new__(cls)
        else:
            made = cls.packed(tuple(values[name] for name in names))
        made.__dict__.update(values)
        return made

    def changed(self: _Struct, **values: Any) -> _Struct:
        """Another struct with some fields replaced; it shares the arrays of all others."""
        return type(self)(**{**vars(self), **values})

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (type(self), vars(self))


def fields(struct: type[Struct]) -> tuple[str, ...]:
    """Names of a struct's fields, in their order."""
    return tuple(name for name in struct.__annotations__ if name != "packed")


def _remade(struct: type[_Struct], values: Mapping[str, Any]) -> _Struct:
    return struct(**values)


def packing(struct: type[Struct], struct_type: type[StructType]) -> Callable[..., Any]:
    """Make the function that builds a struct from the tuple of its values, for one kernel to call.

    The values' references are counted as if each had been assigned to its field.
    """
    names = fields(struct)
    structref.define_boxing(struct_type, struct)

    @intrinsic
    def pack(typing, values):  # type: ignore[no-untyped-def]
        made = struct_type(list(zip(names, values.types, strict=True)))

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            new = structref.new._defn(typing, types.TypeRef(made))[1]
            place = new(context, builder, signature, ())
            data = structref._Utils(context, builder, made).get_data_struct(place)
            given = cgutils.unpack_tuple(builder, arguments[0])
            for name, value_type, value in zip(names, values.types, given, strict=True):
                context.nrt.incref(builder, value_type, value)
                setattr(data, name, value)
            return place

        return made(values), generate

    return pack
