"""The panel of the page: state of the controller, plots, parameters, and buttons that act on the robot."""

from __future__ import annotations

import html
import math
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import viser
from viser import uplot

from contact_id_controller.robot import RobotModel
from contact_id_controller.ros.markers import ARROW_M_PER_WEIGHT
from contact_id_controller.view.listener import Listener
from contact_id_controller.view.remote import Remote

STOP, RESUME, RELEASE, DRIVE = "stop", "resume", "release", "drive"
"""Kinds of requests of a page, besides parameters."""

MOVING = (RESUME, RELEASE, DRIVE)
"""Requests that may let the robot move."""

POINTS = 200
"""Points of each plot: 20 s at 10 Hz."""

LEVEL_COLOURS = ("#1a9c3c", "#d9a300", "#d92020")
"""Good, warning, error."""

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

SMALLEST_TOP = 0.01
"""Least upper limit of a plot's axis: its ticks have three decimals, smaller ones would all read 0."""


class Panel:
    """Plots, parameters and the stop.

    Args:
        server: of the page.
        robot: the controlled robot.
        remote: clients of the controller.
        do: called with kind and action of a request; runs the action in the viewer's own thread.
        measure: whether measured forces are subscribed to from the start.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        robot: RobotModel,
        remote: Remote,
        do: Callable[[str, Callable[[], None]], None],
        measure: bool,
    ) -> None:
        self._server, self._robot, self._remote, self._do = server, robot, remote, do
        self._shown: dict[str, Any] = {}
        self._gains: tuple[list[float], list[float]] | None = None
        gui = server.gui
        gui.configure_theme(control_layout="floating", show_logo=False, show_share_button=False)
        # Escaped: the text comes from other processes.
        self._state = gui.add_html(_lines("no diagnostics yet"))
        self._button(gui, "Emergency stop", STOP, remote.stop, "red", "hand-stop")
        self._button(gui, "Resume", RESUME, remote.resume, "green", "player-play")
        self._release = gui.add_button(
            "Release the emergency stop …", color="gray", icon=viser.Icon.LOCK_OPEN, visible=False
        )
        self._release.on_click(self._ask_to_release)
        self._news = gui.add_html("")
        self._curves: dict[str, tuple[int, ...]] = {}  # those with a value
        self._plots: dict[str, viser.GuiUplotHandle] = {}
        self._rows: dict[str, deque[tuple[float, ...]]] = {
            title: deque(maxlen=POINTS) for title in CURVES
        }  # of (time, value, value, ...)
        # A column at the side; on a narrow screen a sheet, in which the tabs are a line that opens.
        gui.main_panel.dock_right()
        self._parts = gui.add_panel()
        self._parts.dock_below(gui.main_panel)
        self._plotted = self._parts.add_tab("Plots")
        with self._plotted:
            self.measure = gui.add_checkbox(
                "measured forces", measure, hint="A simulation sends them only while needed."
            )
        self._make_controls()

    def _button(
        self,
        gui: viser.GuiApi,
        label: str,
        kind: str,
        act: Callable[[], Any],
        colour: Any,
        icon: Any,
    ) -> None:
        """Add a button that requests ``act`` with this kind, in the thread that receives the page's messages."""

        # In the reading thread: excess messages of a page wait in its own connection.
        async def pressed(_: object) -> None:
            self._do(kind, act)

        gui.add_button(label, color=colour, icon=icon).on_click(pressed)

    async def _ask_to_release(self, event: viser.GuiEvent[Any]) -> None:
        """Release only after a confirmation by the person who pressed the button."""
        if event.client is None:
            return
        gui = event.client.gui
        with gui.add_modal("Release the emergency stop?") as question:
            gui.add_html("The robot moves again after <b>Resume</b>. Is its reach clear?")
            release = gui.add_button("Release", color="red", icon=viser.Icon.LOCK_OPEN)
            keep = gui.add_button("Keep it engaged", color="gray")

        async def released(_: object) -> None:
            question.close()
            self._do(RELEASE, self._remote.release)

        async def kept(_: object) -> None:
            question.close()

        release.on_click(released)
        keep.on_click(kept)

    def _make_controls(self) -> None:
        """Make the controls of model, friction, time constant and gains; each sets its parameter."""
        gui = self._server.gui
        with self._parts.add_tab("Controller"):
            self._model: Any = gui.add_dropdown("model", ("?",))
            self._friction = _number(gui, "friction coefficient", _FRICTION, 0.6)
            self._ground = gui.add_html("")
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
            handle.on_update(self._changed(handle.label, act))

    def _changed(self, label: str, act: Callable[[], None]) -> Any:
        async def changed(event: viser.GuiEvent[Any]) -> None:
            # Only changes by a page, not by this process.
            if event.client is not None:
                self._do(label, act)

        return changed

    def show_stick(self, port: int, token: str) -> None:
        """Show the page of the stick, at a port of the same machine; a link where frames are refused."""
        # The host name is the one in the browser's address, known only there.
        place = f"'http://'+location.hostname+':{port}/?token={token}'"
        frame = f"this.src={place};this.onload=null"
        with self._parts.add_tab("Drive"):
            self._server.gui.add_html(
                f'<iframe title="drive" src="about:blank" onload="{frame}" '
                'style="width:100%;height:520px;border:0"></iframe>'
            )

    def tell(self, line: str) -> None:
        """Show the outcome of a button."""
        self._news.content = _lines(line)

    # What is shown

    def show(self, listener: Listener, speed_m_s: float) -> None:
        """Update text and plots from the messages received last."""
        self._follow_parameters()
        colour = LEVEL_COLOURS[min(listener.level, 2)]
        words = [f'<b style="color:{colour}">● {html.escape(listener.words)}</b>']
        if "safety state" in listener.values:
            words.append(f"safety state: {html.escape(listener.values['safety state'])}")
        words += [html.escape(line) for line in _disturbance(listener.values)]
        if listener.watchdog:
            words.append(f"watchdog: {html.escape(listener.watchdog)}")
        words.append(f"time {listener.time_s:.2f} s")
        if self._robot.floating_base:
            x, y, z = listener.q[:3]
            words.append(f"base x {x:.3f} y {y:.3f} z {z:.3f} m, {speed_m_s:.2f} m/s")
        _put(self._state, "content", _PARAGRAPH.format("<br>".join(words)))
        _put(self._release, "visible", listener.stopped)
        _put(self._ground, "content", self._ground_words())
        for title, values in self._values(listener).items():
            self._plot(title, listener.time_s, values)

    def _ground_words(self) -> str:
        """The simulated ground's friction, with a warning if it is below the controller's."""
        ground = self._remote.ground_friction
        if ground is None:
            return _lines("friction of the ground: unknown")
        words = f"friction of the ground: {ground:g} (simulated)"
        if self._shown and _first(self._shown["friction_coefficient"]) > ground:
            words += ', <b style="color:#d92020">less than the controller counts on</b>'
        return _PARAGRAPH.format(words)

    def _plot(self, title: str, time_s: float, values: tuple[float, ...]) -> None:
        """Add a point to the curves that have a value; a plot restarts when other curves have values."""
        curves = tuple(k for k, value in enumerate(values) if math.isfinite(value))
        rows = self._rows[title]
        if curves != self._curves.get(title):
            self._curves[title] = curves
            rows.clear()
            if title in self._plots:
                self._plots.pop(title).remove()
        if rows and time_s < rows[-1][0]:
            rows.clear()
        if not curves or time_s <= 0.0 or (rows and time_s == rows[-1][0]):
            return
        rows.append((time_s, *(values[k] for k in curves)))
        if len(rows) > 1:
            data = tuple(np.array(rows).T.copy())
            if title in self._plots:
                self._plots[title].data = data
            else:
                self._plots[title] = self._new_plot(title, curves, data)

    def _new_plot(self, title: str, curves: tuple[int, ...], data: Any) -> viser.GuiUplotHandle:
        """Add a plot of these curves, in the order of ``CURVES``; its y axis grows as needed."""
        series = [
            uplot.Series(label=CURVES[title][k], stroke=("#1982e6", "#e6641e")[k], width=1.5)
            for k in curves
        ]
        top = {"soft": SMALLEST_TOP, "mode": 1, "pad": 0.1}
        bottom = {"soft": 0.0, "mode": 1, "pad": 0.1}
        with self._plotted:
            return self._server.gui.add_uplot(
                data,
                series=(uplot.Series(label="s"), *series),
                scales={
                    "x": uplot.Scale(time=False),
                    "y": uplot.Scale(range={"min": bottom, "max": top}),
                },
                title=title,
                height=130,
                padding=(10, 24, 0, 0),  # a tick at the top keeps its upper half
                order=float(list(CURVES).index(title)),
            )

    def _values(self, listener: Listener) -> dict[str, tuple[float, ...]]:
        """Present values by plot: tracking error, forces over weight, torques, step times; NaN where unknown."""
        robot, plan = self._robot, listener.joint_plan
        error = math.nan
        if plan is not None:
            planned = plan.sample(listener.time_s).position
            error = float(np.abs(planned - robot.joints_near(listener.q, planned)).max())
        predicted = sum(arrow.end[2] - arrow.start[2] for arrow in listener.forces)
        measured = sum(force[2] for force in listener.measured.values()) / robot.weight
        sizes = np.abs(listener.torques)
        return {
            "tracking error (rad)": (error,),
            "normal force / weight": (
                predicted / ARROW_M_PER_WEIGHT,
                measured if listener.measured else math.nan,
            ),
            "torque (N·m)": (float(sizes.max(initial=0.0)), float(sizes.mean())),
            "step time (µs)": tuple(
                float(listener.values.get(f"step time {part} (us)", "nan"))
                for part in ("median", "p99")
            ),
        }

    def _follow_parameters(self) -> None:
        """Show the controller's parameters after each answer."""
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
            stiffness, damping = values["joint_position_gain"], values["joint_velocity_gain"]
            self._gains = _list(stiffness), _list(damping)

    # What is set

    def _set_model(self) -> None:
        friction, _, solver = self._model.value.partition("/")
        self._remote.set(friction=friction, solver=solver)

    def _set_friction(self) -> None:
        now = _list(self._shown.get("friction_coefficient"))
        self._set_all("friction_coefficient", [float(self._friction.value)] * len(now))

    def _set_time_constant(self) -> None:
        self._remote.set(contact_time_constant_s=float(self._time_constant.value))

    def _set_gain(self, name: str, number: int) -> None:
        if self._gains is None:
            return
        factor = float((self._stiffness, self._damping)[number].value)
        self._set_all(name, [factor * gain for gain in self._gains[number]])

    def _set_all(self, name: str, values: list[float]) -> None:
        """Set a parameter to these values, or to the only one if it is no list."""
        is_list = isinstance(self._shown.get(name), list)
        self._remote.set(**{name: values if is_list else values[0]})


_PARAGRAPH = '<div style="margin:0.4em 0.8em;font-size:0.875em;overflow-wrap:anywhere">{}</div>'


def _lines(text: str) -> str:
    """Escape a text from outside as HTML."""
    return _PARAGRAPH.format(html.escape(text)) if text else ""


def _rounded(numbers: str, digits: int) -> str:
    """Numbers of a text, with so many decimals: the text flickers less."""
    return ", ".join(
        f"{round(float(each), digits) + 0.0:.{digits}f}" for each in numbers.split(",")
    )


def _disturbance(values: Mapping[str, str]) -> list[str]:
    """Lines on the observed disturbance and payload, from a controller's diagnostics; none if it is not observed."""
    if "payload (kg)" not in values:
        return []
    place, felt = values["payload at (m)"], values["friction felt"]
    at = "" if place == "unknown" else f" at {_rounded(place, 2)} m"
    return [
        f"disturbance {_rounded(values['disturbance force (N)'], 1)} N",
        f"payload {_rounded(values['payload (kg)'], 2)} kg{at}",
        f"friction felt {felt}" if felt.strip("-, ") else "no friction felt yet",
    ]


def _put(handle: Any, name: str, value: Any) -> None:
    """Set an attribute only if it changes: every change is sent to all pages."""
    if getattr(handle, name) != value:
        setattr(handle, name, value)


def _number(gui: Any, label: str, limits: tuple[float, float, float], begin: float) -> Any:
    low, high, step = limits
    return gui.add_slider(label, min=low, max=high, step=step, initial_value=begin)


def _list(value: Any) -> list[float]:
    return list(value) if isinstance(value, list) else [value]


def _first(value: Any) -> float:
    return float(_list(value)[0])
