"""Description of a contact model in the registry: its law, its options, its limits.

Code that depends on what a model can do reads its row instead of comparing names. Nothing here loads a kernel.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import numbers
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from contact_id_controller.exceptions import UnknownModelError, choices
from contact_id_controller.lazy import loaded
from contact_id_controller.parameter_spec import ParameterSpec


class Normal(enum.Enum):
    """Law of the normal forces f_N and separation speeds w_N of touching contacts."""

    COMPLEMENTARITY = "0 <= f_N perp w_N >= 0"
    COMPLEMENTARITY_FREE = "the force lies in its cone, the velocity in the dual one, orthogonal"
    HOLDING = "w = 0, forces in their cones: touching contacts neither part nor slip"
    NONE = "no law: contact is ignored, or its forces are given"


class Tangential(enum.Enum):
    """Law of the tangential forces f_T."""

    COULOMB = "|f_T| <= mu f_N, opposed to slip"
    NO_SLIP = "whatever holds a touching contact"
    VISCOUS = "-viscosity times the tangential velocity"
    FRICTIONLESS = "zero"
    NONE = "no law"


@dataclasses.dataclass(frozen=True)
class Option:
    """A keyword option of contact models, and where the controller takes its value from.

    Args:
        keyword: its name for ``solve``.
        parameter: the parameter that sets it in YAML; None: no parameter does.
        supplied: the controller supplies the value (``control.controller`` has the list), for example
            the limits of the robot's motors.
        annotation: its type, of an option without a parameter.
        default: the model's own; None: that of the parameter, where there is one.
        choices: the values that exist; empty: those of the parameter, or any.
        least: the smallest value, of an integer; None: any.
    """

    keyword: str
    parameter: ParameterSpec | None = None
    supplied: bool = False
    annotation: str = "Any"
    default: Any = None
    choices: tuple[str, ...] = ()
    least: float | None = None

    def by_default(self, value: Any) -> Option:
        """The same option with another default, for a model that needs one."""
        return dataclasses.replace(self, default=value)

    @property
    def value(self) -> Any:
        """Default value."""
        if self.default is None and self.parameter is not None:
            return self.parameter.default
        return self.default

    def refuse(self, value: Any) -> None:
        """Raise if a value does not exist.

        Raises:
            UnknownModelError: the message names it, and the valid ones.
        """
        valid = self.choices or (() if self.parameter is None else self.parameter.choices)
        if valid and value not in valid:
            raise UnknownModelError(f"{self.keyword} is {value!r}; choose one of {choices(valid)}")
        whole = isinstance(value, numbers.Integral)
        if self.least is not None and (not whole or value < self.least):
            raise UnknownModelError(
                f"{self.keyword} must be an integer of at least {self.least}, got {value!r}"
            )

    def type_text(self) -> str:
        """Its type as Python writes it."""
        if self.parameter is None:
            return self.annotation
        if self.parameter.choices:
            return literal(self.parameter.choices)
        return {"integer": "int", "number": "float", "boolean": "bool"}.get(
            self.parameter.kind, "Any"
        )


class Chosen(types.SimpleNamespace):
    """Immutable values of all options of a model, by their keywords."""

    def but(self, **values: Any) -> Chosen:
        """A copy with some values changed."""
        return Chosen(**{**vars(self), **values})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"options do not change, {name!r} neither: see but")


DERIVABLE = {
    "distribution": ("least_torque", "least_force"),
    "cone": ("pyramid",),
}
"""Values of options with which the forces of a model with ``active_set`` have a derivative."""


def literal(names: Iterable[str]) -> str:
    """Source text of the type of a value that is one of these names."""
    return f"Literal[{', '.join(repr(name) for name in names)}]".replace("'", '"')


@dataclasses.dataclass(frozen=True)
class ContactModel:
    """Row of the registry: how one contact model is called and what it can do.

    Args:
        friction, solver: the two names by which users choose it.
        choose_when: one line for the tables of the documentation.
        normal, tangential: the law of its solutions, which benchmarks and tests check.
        options: all that it takes, each named once, here.
        home: "module:function" in ``models``, or the function itself; None: the controller needs no
            solution (feedback alone). By default the function ``solve_<friction>_<solver>`` in the
            file ``<friction>_<solver>.py``.
        exact_cone: friction in the quadratic cone; otherwise in the polygon of option ``edges``.
        yields: its contacts are soft, with option ``regularisation`` as compliance.
        uses_history: which of several solutions it finds depends on ``warm_start``.
        engine: can drive the rigid engine, ``experiments/rigid/``.
        switchable: prepared by default for being switched to while the controller runs.
        most_contacts: more are refused; None: any number.
        practical_contacts: with more a solve takes tenths of a second; benchmarks stop there.
        without_slip: (friction, solver) of the model that solves its problems where all
            coefficients of friction are infinite.
        steep_friction: from this coefficient on, sliding contacts take several times the torque of the exact law in one
            state of 20 to 50 (results/benchmarks.md); infinity: in none, or it lets nothing slide.
        iterative: converges to its solution up to ``accuracy``; others are exact to rounding.
        unique_forces: forces depend on the problem alone, not on the order of the contacts.
        accuracy: relative violation of its law up to which it calls a solution solved.
        solved_share: share of the solvable random problems of ``benchmark.robustness`` that it solves.
        active_set: "module:function" in ``models``, which gives the active set of a solution
            (``models.active_set``), with which the derivative of its torques by the state is computed
            (``control.state_gain``). Empty: there is none.
        frames: "module:function" in ``models``: ``function(friction, load_share, options)`` returns a function
            that solves problems with these contacts in one compiled call (``frame_problems.FramesCall``), bit
            for bit as one by one, or None where the options need more. Empty: no such call.
    """

    friction: str
    solver: str
    choose_when: str
    normal: Normal
    tangential: Tangential
    options: tuple[Option, ...] = ()
    home: str | Callable[..., Any] | None = ""
    exact_cone: bool = False
    yields: bool = False
    uses_history: bool = False
    engine: bool = False
    switchable: bool = False
    most_contacts: int | None = None
    practical_contacts: int | None = None
    without_slip: tuple[str, str] | None = None
    steep_friction: float = math.inf
    iterative: bool = False
    unique_forces: bool = True
    accuracy: float = 1e-6
    solved_share: float = 0.9999
    active_set: str = ""
    frames: str = ""

    def __str__(self) -> str:
        return f"{self.friction}/{self.solver}"

    def __getstate__(self) -> dict[str, Any]:
        names = [field.name for field in dataclasses.fields(self)]
        return {name: getattr(self, name) for name in names}  # what is remembered, apart

    @property
    def pair(self) -> tuple[str, str]:
        """(friction, solver)."""
        return self.friction, self.solver

    @property
    def predicts_forces(self) -> bool:
        """Whether it predicts contact forces; the others are references for comparison."""
        return self.normal is not Normal.NONE

    @functools.cached_property
    def feedback_only(self) -> bool:
        """Whether it solves no problem: the controller's feedback is the torque."""
        return self.home is None

    @property
    def holds_touching(self) -> bool:
        """Whether no touching contact can part or slip: a law for planned motion only."""
        return self.normal is Normal.HOLDING

    @functools.cached_property
    def accepted(self) -> frozenset[str]:
        """The keywords of its options."""
        return frozenset(option.keyword for option in self.options)

    @functools.cached_property
    def function(self) -> Callable[..., Any]:
        """``function(problem, options, warm_start) -> Solution``, loaded on first use.

        options: see ``complete``.
        """
        if callable(self.home):
            return self.home
        name = f"{self.friction}_{self.solver}"
        place = self.home or f"{name}:solve_{name}"
        return loaded(f"models.{place}")

    @functools.cached_property
    def read_active_set(self) -> Callable[..., Any]:
        """Function that ``active_set`` names, loaded on first use."""
        return loaded(f"models.{self.active_set}")

    @functools.cached_property
    def prepare_frames(self) -> Callable[..., Any] | None:
        """Function that ``frames`` names, loaded on first use; None if there is none."""
        return loaded(f"models.{self.frames}") if self.frames else None

    def not_derivable(self, settings: Any) -> str:
        """Return why the derivative of its torques by the state is not available; empty if it is.

        settings: has the parameters, options of the model among them, as attributes.
        """
        if not self.active_set:
            return f"{self} provides no active set"
        keywords = self.keywords(settings, {})
        for keyword in DERIVABLE.keys() & keywords.keys():
            if keywords[keyword] not in DERIVABLE[keyword]:
                allowed = " or ".join(DERIVABLE[keyword])
                return f"{keyword} is {keywords[keyword]!r}, must be {allowed}"
        return ""

    @functools.cached_property
    def defaults(self) -> Chosen:
        """All options at their defaults."""
        return Chosen(**{option.keyword: option.value for option in self.options})

    def complete(self, keywords: Mapping[str, Any]) -> Chosen:
        """All options: those given, the others at their defaults.

        Raises:
            UnknownModelError: an option that the model does not have, or a value that does not exist.
        """
        if not keywords:
            return self.defaults
        try:
            return self._completed(tuple(keywords.items()))
        except TypeError:  # an array or a list cannot be remembered
            return self._checked(tuple(keywords.items()))

    @functools.cached_property
    def _completed(self) -> Callable[[tuple[tuple[str, Any], ...]], Chosen]:
        """``_checked`` with a cache, since the same options come with every problem."""
        return functools.lru_cache(maxsize=64, typed=True)(self._checked)

    def _checked(self, keywords: tuple[tuple[str, Any], ...]) -> Chosen:
        """All options with these keywords changed; UnknownModelError for an unknown one lists those that exist."""
        given = dict(keywords)
        for option in self.options:
            if option.keyword in given:
                option.refuse(given[option.keyword])
        unknown = sorted(given.keys() - self.accepted)
        if unknown:
            raise UnknownModelError(
                f"{self} has no option {unknown[0]!r}; it has {choices(self.accepted)}"
            )
        return self.defaults.but(**given)

    def takes(self, keyword: str) -> bool:
        """Whether it has the option ``keyword``."""
        return keyword in self.accepted

    def keywords(self, settings: Any, supplied: Mapping[str, Any]) -> dict[str, Any]:
        """Options from ``settings`` and ``supplied``; the others keep the model's defaults.

        settings: an attribute for each parameter, and ``options``, those without one by keyword. A
        parameter that the settings do not have, of a model registered later, is at its default.
        """
        experimental = getattr(settings, "options", {})
        chosen = {}
        for option in self.options:
            if option.keyword in experimental:
                chosen[option.keyword] = experimental[option.keyword]
            elif option.supplied:
                if option.keyword in supplied:
                    chosen[option.keyword] = supplied[option.keyword]
            elif option.parameter is not None:
                parameter = option.parameter
                chosen[option.keyword] = getattr(settings, parameter.name, parameter.default)
        return chosen
