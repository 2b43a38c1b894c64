"""Kernels as parts of others: optimised, and compiled to machine code, only in the kernels that Python calls.

numba by itself optimises each callee, makes machine code and wrappers of it, and does all of that
again in its caller, and in the caller of that: ten levels deep, ten times. Here a kernel called
by another one stays as LLVM code, and a kernel called by Python is optimised once, with all that it
calls. Parts are not cached: the cache of a kernel that Python calls contains them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import compiler
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import CPUDispatcher


class _PartLibrary(JITCodeLibrary):
    """Code that is linked into others and never run by itself."""

    _shared_module: Any

    def finalize(self) -> None:
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """LLVM module of this code with all that it calls, each once."""
        if self._shared_module is None:
            # LLVM links only what is referenced by then: callers come before callees.
            for library in reversed(_called(self, {self})):
                self._reload_init.update(library._reload_init)
                part = isinstance(library, _PartLibrary)
                module = library._own_module() if part else library._get_module_for_linking()
                self._final_module.link_in(module, preserve=True)
            self._shared_module = self._own_module()
        return self._shared_module

    def _own_module(self) -> Any:
        """LLVM module of this library alone, for linking."""
        module, self._shared_module = self._shared_module, None
        own = super()._get_module_for_linking()
        self._shared_module = module
        return own


def _called(library: Any, seen: set[Any]) -> list[Any]:
    """All that a part calls, directly or not, callees first."""
    found: list[Any] = []
    for one in library._linking_libraries:
        if one not in seen:
            seen.add(one)
            found += [*(_called(one, seen) if isinstance(one, _PartLibrary) else ()), one]
    return found


class _Flags(compiler.Flags):
    """Immutable flags: numba compares them at every operation that it types."""

    __slots__ = ("_hashed",)

    def __hash__(self) -> int:
        if not hasattr(self, "_hashed"):
            self._hashed: int = super().__hash__()
        return self._hashed

    def copy(self) -> Any:
        """Mutable copy."""
        return compiler.Flags(self)


_KEPT: dict[_Flags, _Flags] = {}


def _flags_of_part(flags: Any) -> _Flags:
    """One object for equal flags, so that they are compared by identity."""
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    kept = _Flags(flags)
    return _KEPT.setdefault(kept, kept)


class _PartCompiler(compiler.Compiler):
    """Compiles up to the stage before LLVM's optimisation."""

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """Compile as a library of its own that callers link, instead of code that each caller contains again."""
        context = self.state.targetctx
        library = _PartLibrary(context.codegen(), function.__qualname__)
        self.state.library = library
        # numba finds what is called by its entry point; a part has none, and its library is as unique.
        result = super().compile_extra(function)._replace(entry_point=library)
        context.insert_user_function(library, result.fndesc, [library])
        return result


class _Part(CPUDispatcher):
    """Dispatcher that kernels call in place of another kernel's."""

    def add_overload(self, result: Any) -> None:
        self.overloads[tuple(result.signature.args)] = result


def called_as_part(dispatcher: Any) -> Any:
    """Let other kernels link a kernel as a part; Python calls the dispatcher itself."""
    if not isinstance(dispatcher, CPUDispatcher):  # NUMBA_DISABLE_JIT
        return dispatcher
    part = _Part(
        dispatcher.py_func, targetoptions=dispatcher.targetoptions, pipeline_class=_PartCompiler
    )
    part._compiler._customize_flags = _flags_of_part
    part._compiling_counter = dispatcher._compiling_counter  # of a kernel that calls itself
    dispatcher.get_call_template = part.get_call_template
    dispatcher.get_overload = part.get_overload
    dispatcher.add_overload = _with_environments(dispatcher.add_overload)
    return dispatcher


def _with_environments(add_overload: Callable[[Any], None]) -> Callable[[Any], None]:
    """Give parts the constants of their exceptions; those from the cache have them."""

    def add(result: Any) -> None:
        for environment in result._find_referenced_environments():
            result.codegen.set_env(environment.env_name, environment)
        add_overload(result)

    return add
