"""A live view of a running controller in a browser, in a process of its own that does not delay the control loop.

viser serves the page: its client is part of its package, so that nothing is loaded from a network, it works on a
phone, and scene, plots and buttons are Python. RViz needs a ROS installation and a screen, Meshcat has no buttons,
Foxglove a program of its own.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import viser
from rclpy.node import Node

from contact_id_controller.exceptions import RunError
from contact_id_controller.ros.executor import GuardedExecutor
from contact_id_controller.ros.process import Interrupt, run_node
from contact_id_controller.runs.ros_run import LINK, READY
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.gait import MAX_YAW_RATE_RAD_S
from contact_id_controller.settings.gait_planner import GaitPlannerSettings
from contact_id_controller.settings.parameter_file import ParameterFile
from contact_id_controller.view.drive import Drive, DrivePage
from contact_id_controller.view.gate import Gate, gated_viser
from contact_id_controller.view.listener import Listener
from contact_id_controller.view.panel import DRIVE, MOVING, RELEASE, RESUME, STOP, Panel
from contact_id_controller.view.remote import Remote
from contact_id_controller.view.scene_view import Scene
from contact_id_controller.view.side_processes import LOOPBACK, PORT

NICENESS = 5
"""Below the priority of the controller's and the robot's processes."""

NARROW_PIXELS = 577
"""Width below which viser's panel is a sheet at the bottom of the screen."""

SMALL_M = 0.6
"""Height of a robot above which the camera is placed farther away."""

_SCENE_S, _PANEL_S, _PLAN_S, _PARAMETERS_S = 0.05, 0.1, 0.25, 2.0


class Wishes:
    """Requests of pages: the latest of each kind, so that nothing queues up; for any thread.

    A stop is executed first, and drops requests made beside it that would let the robot move.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: dict[str, Callable[[], None]] = {}

    def __len__(self) -> int:
        return len(self._latest)

    def put(self, kind: str, act: Callable[[], None]) -> None:
        """Put a request, which replaces the last one of its kind."""
        with self._lock:
            self._latest[kind] = act

    def take(self) -> list[Callable[[], None]]:
        """Take the pending requests, in the order of execution."""
        with self._lock:
            latest, self._latest = self._latest, {}
        if STOP in latest:
            latest = {STOP: latest.pop(STOP)} | {k: latest[k] for k in latest if k not in MOVING}
        return list(latest.values())


class Viewer:
    """The page of one controller.

    Args:
        node: owner of subscriptions and clients.
        settings: of the controller.
        controller, watchdog: names of its node and of its command watchdog.
        host, port: address of the page.

    Raises:
        RunError: the port is taken, or this version of viser lets unauthorised requests in.
    """

    def __init__(
        self,
        node: Node,
        settings: ControllerSettings,
        controller: str,
        host: str,
        port: int,
        watchdog: str = "command_watchdog",
    ) -> None:
        robot = settings.robot()
        self.gate = Gate(host)
        self.server = gated_viser(self.gate, host, port)
        self.wishes = Wishes()
        self.listener = Listener(node, robot, settings, controller, watchdog)
        self.remote = Remote(node, controller, self._tell, watchdog)
        self.scene = Scene(self.server, robot, settings)
        measure = settings.mode == "lockstep"
        self.panel = Panel(self.server, robot, self.remote, self.wishes.put, measure)
        self._due = dict.fromkeys((_SCENE_S, _PANEL_S, _PLAN_S, _PARAMETERS_S), 0.0)
        self._place = np.zeros(3)
        self._placed_s = self._speed = 0.0
        self.server.on_client_connect(partial(_look, self.scene.shapes.height_m()))
        self.drive: Drive | None = None
        self.drive_page: DrivePage | None = None

    def let_drive(self, node: Node, host: str, speed_m_s: float, yaw_rate_rad_s: float) -> int:
        """Add stick, keys and joystick; return the port of their page, which is also a tab of the main page."""
        self.drive = Drive(node, speed_m_s, yaw_rate_rad_s)
        port = self.server.get_port() + 1
        try:
            self.drive_page = DrivePage(self.gate, host, port, self._obey)
        except RunError:
            self.drive_page = DrivePage(self.gate, host, 0, self._obey)
        self.panel.show_stick(self.drive_page.port, self.gate.token)
        return self.drive_page.port

    def _obey(self, said: dict[str, Any]) -> None:
        """Queue the request of a page: stop, resume, release, or a velocity to drive at."""
        remote = self.remote
        if said.get("stop"):
            self.wishes.put(STOP, remote.stop)
        elif said.get("resume"):
            self.wishes.put(RESUME, remote.resume)
        elif said.get("release"):
            self.wishes.put(RELEASE, remote.release)
        elif "drive" in said and self.drive is not None:
            self.wishes.put(DRIVE, partial(self.drive.want, said["drive"]))

    def _tell(self, line: str) -> None:
        self.panel.tell(line)
        if self.drive_page is not None:
            self.drive_page.tell(line)

    def turn(self) -> None:
        """Take messages, execute requests, and draw what is due while a page is open."""
        for act in self.wishes.take():
            act()
        if self.drive is not None:
            self.drive.tick()
        self.listener.take()
        looked_at = self.is_looked_at()
        self.listener.measure(looked_at and self.panel.measure.value)
        now = time.monotonic()
        if self._is_due(_PARAMETERS_S, now):
            self.remote.read()
        if not looked_at:
            return
        if self._is_due(_PANEL_S, now):
            self.panel.show(self.listener, self._speed_m_s())
        if not self.listener.time_s:
            return
        if self._is_due(_SCENE_S, now):
            self.scene.show(self.listener)
        if self._is_due(_PLAN_S, now):
            self.scene.show_plan(self.listener)

    def is_looked_at(self) -> bool:
        """Whether a browser has the page open."""
        return bool(self.server.get_clients())

    def _is_due(self, period_s: float, now: float) -> bool:
        due = now >= self._due[period_s]
        if due:
            self._due[period_s] = now + period_s
        return due

    def _speed_m_s(self) -> float:
        """Horizontal speed of the base over about half a second, m/s."""
        elapsed_s = self.listener.time_s - self._placed_s
        if not 0.0 <= elapsed_s < 0.5:
            moved = np.linalg.norm(self.listener.q[:2] - self._place[:2])
            self._speed = float(moved / elapsed_s) if 0.0 < elapsed_s < 5.0 else 0.0
            self._place, self._placed_s = self.listener.q[:3].copy(), self.listener.time_s
        return self._speed

    def close(self) -> None:
        """Stop serving the pages."""
        if self.drive_page is not None:
            self.drive_page.close()
        self.server.stop()


def _look(height_m: float, client: viser.ClientHandle) -> None:
    """Place the camera behind and above a robot of this height.

    On a narrow screen, whose lower part is covered by the panel, it is farther away.
    """
    camera = client.camera
    narrow = camera.image_width < NARROW_PIXELS
    size = max(height_m / SMALL_M, 1.0)
    camera.position = size * np.array([-1.35, -1.65, 0.85] if narrow else [-0.9, -1.1, 0.7])
    camera.look_at = size * np.array([0.0, 0.0, -0.45] if narrow else [0.0, 0.0, 0.1])


def main(arguments: list[str] | None = None) -> int:
    """Serve the page until interrupted; 1 after an error of which one line has been printed."""
    parser = argparse.ArgumentParser(prog="contact_id_viewer", description=__doc__.splitlines()[0])
    parser.add_argument("--parameters", type=Path, required=True, help="file of the controller")
    parser.add_argument("--controller", default="controller", help="name of its node")
    parser.add_argument(
        "--watchdog",
        default="command_watchdog",
        help="name of the watchdog behind it, where one is",
    )
    parser.add_argument(
        "--host",
        default=LOOPBACK,
        help="address to listen on; anyone with the printed link can stop, tune and drive the "
        "robot (default: this machine alone)",
    )
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--teleop", action="store_true", help="let pages and joysticks drive")
    parser.add_argument("--planner", default="gait_planner", help="name of the node that is driven")
    words = sys.argv[1:] if arguments is None else arguments
    given, ros_arguments = parser.parse_known_args(words)

    def serve(node: Node, interrupt: Interrupt) -> int:
        section = ParameterFile(given.parameters).section(given.controller)
        settings = ControllerSettings.from_mapping(section)
        viewer = Viewer(node, settings, given.controller, given.host, given.port, given.watchdog)
        if given.teleop:
            gait = GaitPlannerSettings.from_mapping(
                ParameterFile(given.parameters).section(given.planner)
            )
            port = viewer.let_drive(node, given.host, gait.speed_m_s, MAX_YAW_RATE_RAD_S)
            print(f"stick: {viewer.gate.link(port)}", flush=True)
        executor = GuardedExecutor(node, context=node.context)
        if viewer.scene.shapes.remark:
            print(viewer.scene.shapes.remark, flush=True)
        print(f"{LINK}{viewer.gate.link(viewer.server.get_port())}", flush=True)
        print(READY, flush=True)
        try:
            while not interrupt.requested:
                viewer.turn()
                executor.spin_once(timeout_sec=0.01)
        finally:
            viewer.close()
        return 0

    os.nice(NICENESS)
    return run_node("viewer", lambda _: Node("viewer"), serve, ros_arguments)


if __name__ == "__main__":
    sys.exit(main())
