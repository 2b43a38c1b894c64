"""The panel of the page: what the controller does, and buttons that really do it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from functools import partial

import numpy as np
import viser
from viser import uplot

from contact_id_controller.robot import RobotModel
from contact_id_controller.ros.markers import ARROW_M_PER_WEIGHT
from contact_id_controller.view.listener import Listener
from contact_id_controller.view.remote import Remote

POINTS = 200
"""Of each plot: 20 s at 10 Hz."""

LEVELS = ("🟢", "🟡", "🔴")
_FRICTION = (0.01, 2.0, 0.01)
_TIME_CONSTANT_S = (0.001, 0.3, 0.001)
_GAIN = (0.1, 3.0, 0.05)

CURVES = {
    "tracking error (rad)": ("largest of the joints",),
    "normal force / weight": ("predicted", "measured"),
    "torque (N·m)": ("largest", "mean"),
    "step time (µs)": ("median", "p99"),
}
"""Title of a plot -> its curves."""


class Panel:
    """Plots, parameters and the stop.

    Args:
        server: of the page.
        robot: that is looked at.
        remote: to the controller.
        do: takes an action to be run in the viewer's own thread.
        measure: whether measured forces are listened to from the beginning.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        robot: RobotModel,
        remote: Remote,
        do: Callable[[Callable[[], None]], None],
        measure: bool,
    ) -> None:
        self._server, self._robot, self._remote, self._do = server, robot, remote, do
        self._shown: dict = {}
        self._gains: tuple[list[float], list[float]] | None = None
        gui = server.gui
        gui.configure_theme(control_layout="floating", show_logo=False, show_share_button=False)
        self._state = gui.add_markdown("nothing heard yet")
        self._button("Emergency stop", partial(remote.emergency_stop, True), "red", "hand-stop")
        self._button("Resume", remote.resume, "green", "player-play")
        self._news = gui.add_markdown("")
        self.measure = gui.add_checkbox(
            "measured forces", measure, hint="A simulation sends them only while someone listens."
        )
        self._plots = {}
        self._rows = {
            title: deque(maxlen=POINTS) for title in CURVES
        }  # of (time, value, value, ...)
        with gui.add_folder("Plots"):
            for title, curves in CURVES.items():
                self._plots[title] = gui.add_uplot(
                    tuple(np.zeros(2) for _ in range(len(curves) + 1)),
                    series=(
                        uplot.Series(label="s"),
                        *(
                            uplot.Series(label=curve, stroke=colour, width=1.5)
                            for curve, colour in zip(curves, ("#1982e6", "#e6641e"))
                        ),
                    ),
                    scales={"x": uplot.Scale(time=False)},
                    title=title,
                    height=130,
                )
        self._make_controls()

    def _button(self, label: str, act: Callable[[], None], colour, icon) -> None:
        button = self._server.gui.add_button(label, color=colour, icon=icon)
        button.on_click(lambda _: self._do(act))

    def _make_controls(self) -> None:
        gui = self._server.gui
        with gui.add_folder("Controller"):
            self._model = gui.add_dropdown("model", ("?",))
            self._friction = _number(gui, "friction coefficient", _FRICTION, 0.6)
            self._time_constant = _number(gui, "contact time constant (s)", _TIME_CONSTANT_S, 0.05)
            self._stiffness = _number(gui, "position gains ×", _GAIN, 1.0)
            self._damping = _number(gui, "velocity gains ×", _GAIN, 1.0)
        for handle, act in (
            (self._model, self._set_model),
            (self._friction, self._set_friction),
            (self._time_constant, self._set_time_constant),
            (self._stiffness, partial(self._set_gain, "joint_position_gain", 0)),
            (self._damping, partial(self._set_gain, "joint_velocity_gain", 1)),
        ):
            # Changed by whoever looks on, not by ourselves.
            handle.on_update(lambda event, act=act: event.client and self._do(act))

    def show_stick(self, port: int) -> None:
        """The page of a stick, at a port of the same machine; a link where frames are refused."""
        # The machine's name is what the page's reader called it by, which only the reader knows.
        frame = f"this.src='http://'+location.hostname+':{port}/';this.onload=null"
        with self._server.gui.add_folder("Drive"):
            self._server.gui.add_html(
                f'<iframe title="drive" src="about:blank" onload="{frame}" '
                'style="width:100%;height:440px;border:0"></iframe>'
            )

    def tell(self, line: str) -> None:
        """Show what came of a button."""
        self._news.content = line

    # What is shown

    def show(self, heard: Listener, speed_m_s: float) -> None:
        """Words and plots of what was heard last."""
        self._follow_parameters()
        words = [f"{LEVELS[min(heard.level, 2)]} **{heard.words}**"]
        if "safety state" in heard.values:
            words.append(f"safety state: {heard.values['safety state']}")
        words.append(f"time {heard.time_s:.2f} s")
        if self._robot.floating_base:
            x, y, z = heard.q[:3]
            words.append(f"base x {x:.3f} y {y:.3f} z {z:.3f} m, {speed_m_s:.2f} m/s")
        text = "  \n".join(words)
        if self._state.content != text:
            self._state.content = text
        for title, values in self._values(heard).items():
            rows = self._rows[title]
            if rows and heard.time_s < rows[-1][0]:
                rows.clear()
            if not rows or heard.time_s > rows[-1][0]:
                rows.append((heard.time_s, *values))
                if len(rows) > 1:
                    self._plots[title].data = tuple(np.array(rows).T.copy())

    def _values(self, heard: Listener) -> dict[str, tuple[float, ...]]:
        robot, plan = self._robot, heard.joint_plan
        error = math.nan
        if plan is not None:
            planned = plan.sample(heard.time_s).position
            error = float(np.abs(planned - robot.joints_near(heard.q, planned)).max())
        predicted = sum(arrow.end[2] - arrow.start[2] for arrow in heard.forces)
        measured = sum(force[2] for force in heard.measured.values()) / robot.weight
        sizes = np.abs(heard.torques)
        return {
            "tracking error (rad)": (error,),
            "normal force / weight": (
                predicted / ARROW_M_PER_WEIGHT,
                measured if heard.measured else math.nan,
            ),
            "torque (N·m)": (float(sizes.max(initial=0.0)), float(sizes.mean())),
            "step time (µs)": tuple(
                float(heard.values.get(f"step time {part} (us)", "nan"))
                for part in ("median", "p99")
            ),
        }

    def _follow_parameters(self) -> None:
        """Show what the controller says of its parameters, after each answer."""
        values = self._remote.values
        if not values or values == self._shown:
            return
        self._shown = dict(values)
        pair = f"{values['friction']}/{values['solver']}"
        self._model.options = tuple(dict.fromkeys([pair, *values.get("live_models", ())]))
        self._model.value = pair
        self._friction.value = min(_first(values["friction_coefficient"]), _FRICTION[1])
        self._time_constant.value = values["contact_time_constant_s"]
        if self._gains is None:
            self._gains = tuple(
                _list(values[name]) for name in ("joint_position_gain", "joint_velocity_gain")
            )

    # What is set

    def _set_model(self) -> None:
        friction, _, solver = self._model.value.partition("/")
        self._remote.set(friction=friction, solver=solver)

    def _set_friction(self) -> None:
        value = float(self._friction.value)
        self._set_like("friction_coefficient", lambda _: value)

    def _set_time_constant(self) -> None:
        self._remote.set(contact_time_constant_s=float(self._time_constant.value))

    def _set_gain(self, name: str, number: int) -> None:
        if self._gains is None:
            return
        factor = float((self._stiffness, self._damping)[number].value)
        values = [factor * gain for gain in self._gains[number]]
        self._remote.set(**{name: values if isinstance(self._shown[name], list) else values[0]})

    def _set_like(self, name: str, change: Callable[[float], float]) -> None:
        """Set one value or all of a list, as the parameter has it."""
        now = self._shown.get(name)
        self._remote.set(
            **{name: [change(v) for v in now] if isinstance(now, list) else change(now)}
        )


def _number(gui, label: str, limits: tuple[float, float, float], begin: float):
    low, high, step = limits
    return gui.add_slider(label, min=low, max=high, step=step, initial_value=begin)


def _list(value) -> list[float]:
    return list(value) if isinstance(value, list) else [value]


def _first(value) -> float:
    return float(_list(value)[0])
