"""A live view of a running controller in a browser; a process of its own that the loop never waits for.

viser serves the page: its client lies in its wheel, so that nothing comes from a network, it works on a
phone, and scene, plots and buttons are Python. RViz needs a ROS installation and a screen, Meshcat has
no buttons, Foxglove a program of its own.
"""

from __future__ import annotations

import argparse
import os
import queue
import sys
import time
from pathlib import Path

import numpy as np
import viser
from rclpy.node import Node

from contact_id_controller.exceptions import RunError
from contact_id_controller.ros.executor import GuardedExecutor
from contact_id_controller.ros.process import Interrupt, run_node
from contact_id_controller.runs.ros_run import READY
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.gait_planner import GaitPlannerSettings
from contact_id_controller.settings.parameter_file import ParameterFile
from contact_id_controller.view.companions import LOOPBACK, PORT
from contact_id_controller.view.drive import Drive, DrivePage
from contact_id_controller.view.listener import Listener
from contact_id_controller.view.panel import Panel
from contact_id_controller.view.remote import Remote
from contact_id_controller.view.scene import Scene

NICENESS = 5
"""The controller's and the robot's processes come first."""

_SCENE_S, _PANEL_S, _PLAN_S, _PARAMETERS_S = 0.05, 0.1, 0.25, 2.0


class Viewer:
    """The page of one controller.

    Args:
        node: owner of subscriptions and clients.
        settings: of the controller.
        controller: name of its node.
        host, port: where the page is.

    Raises:
        RunError: the port is taken.
    """

    def __init__(
        self, node: Node, settings: ControllerSettings, controller: str, host: str, port: int
    ) -> None:
        robot = settings.robot()
        try:
            self.server = viser.ViserServer(host=host, port=port, label="contact_id", verbose=False)
        except OSError as error:
            raise RunError(f"no page at {host}:{port}: {error.strerror or error}") from error
        self._actions: queue.SimpleQueue = queue.SimpleQueue()
        self.heard = Listener(node, robot, settings, controller)
        self.remote = Remote(node, controller, self._tell)
        self.scene = Scene(self.server, robot, settings)
        measure = settings.mode == "lockstep"
        self.panel = Panel(self.server, robot, self.remote, self._actions.put, measure)
        self._due = dict.fromkeys((_SCENE_S, _PANEL_S, _PLAN_S, _PARAMETERS_S), 0.0)
        self._place = np.zeros(3)
        self._placed_s = self._speed = 0.0
        self.server.on_client_connect(_look)
        self.drive: Drive | None = None
        self.drive_page: DrivePage | None = None

    def let_drive(self, node: Node, host: str, speed_m_s: float, yaw_rate_rad_s: float) -> None:
        """Add stick, keys and joystick; the page with the stick stands within the other one, too."""
        self.drive = Drive(node, speed_m_s, yaw_rate_rad_s)

        def do(said: dict) -> None:
            self._actions.put(lambda: self._obey(said))

        try:
            self.drive_page = DrivePage(host, self.server.get_port() + 1, do)
        except RunError:
            self.drive_page = DrivePage(host, 0, do)
        self.panel.show_stick(self.drive_page.port)

    def _obey(self, said: dict) -> None:
        if "drive" in said:
            self.drive.want(said["drive"])
        elif said.get("stop"):
            self.remote.emergency_stop(True)
        elif said.get("resume"):
            self.remote.resume()

    def _tell(self, line: str) -> None:
        self.panel.tell(line)
        if self.drive_page is not None:
            self.drive_page.tell(line)

    def turn(self) -> None:
        """Take what has come, do what was asked for, draw what is due while somebody looks."""
        while not self._actions.empty():
            self._actions.get()()
        if self.drive is not None:
            self.drive.tick()
        self.heard.take()
        looked_at = self.is_looked_at()
        self.heard.measure(looked_at and self.panel.measure.value)
        now = time.monotonic()
        if self._is_due(_PARAMETERS_S, now):
            self.remote.read()
        if not looked_at or not self.heard.time_s:
            return
        if self._is_due(_SCENE_S, now):
            self.scene.show(self.heard)
        if self._is_due(_PLAN_S, now):
            self.scene.show_plan(self.heard)
        if self._is_due(_PANEL_S, now):
            self.panel.show(self.heard, self._speed_m_s())

    def is_looked_at(self) -> bool:
        """Whether a browser shows the page."""
        return bool(self.server.get_clients())

    def _is_due(self, period_s: float, now: float) -> bool:
        due = now >= self._due[period_s]
        if due:
            self._due[period_s] = now + period_s
        return due

    def _speed_m_s(self) -> float:
        """Of the base over about half a second."""
        elapsed_s = self.heard.time_s - self._placed_s
        if not 0.0 <= elapsed_s < 0.5:
            moved = np.linalg.norm(self.heard.q[:2] - self._place[:2])
            self._speed = float(moved / elapsed_s) if 0.0 < elapsed_s < 5.0 else 0.0
            self._place, self._placed_s = self.heard.q[:3].copy(), self.heard.time_s
        return self._speed

    def close(self) -> None:
        """End the pages."""
        if self.drive_page is not None:
            self.drive_page.close()
        self.server.stop()


def _look(client: viser.ClientHandle) -> None:
    """From behind and above, whatever the screen."""
    client.camera.position = (-0.9, -1.1, 0.7)
    client.camera.look_at = (0.0, 0.0, 0.1)


def main(arguments: list[str] | None = None) -> int:
    """Serve the page until asked to end; 1 after an error of which one line has been printed."""
    parser = argparse.ArgumentParser(prog="contact_id_viewer", description=__doc__.splitlines()[0])
    parser.add_argument("--parameters", type=Path, required=True, help="file of the controller")
    parser.add_argument("--controller", default="controller", help="name of its node")
    parser.add_argument(
        "--host",
        default=LOOPBACK,
        help="address to listen on; whoever reaches it can stop and drive the robot "
        "(default: this machine alone)",
    )
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--teleop", action="store_true", help="let pages and joysticks drive")
    parser.add_argument("--planner", default="gait_planner", help="name of the node that is driven")
    words = sys.argv[1:] if arguments is None else arguments
    given, ros_arguments = parser.parse_known_args(words)

    def serve(node: Node, interrupt: Interrupt) -> int:
        section = ParameterFile(given.parameters).section(given.controller)
        settings = ControllerSettings.from_mapping(section)
        viewer = Viewer(node, settings, given.controller, given.host, given.port)
        if given.teleop:
            gait = GaitPlannerSettings.from_mapping(
                ParameterFile(given.parameters).section(given.planner)
            )
            viewer.let_drive(node, given.host, gait.speed_m_s, gait.max_yaw_rate_rad_s)
            print(f"stick: http://{given.host}:{viewer.drive_page.port}", flush=True)
        executor = GuardedExecutor(node, context=node.context)
        if viewer.scene.shapes.told:
            print(viewer.scene.shapes.told, flush=True)
        print(f"page: http://{given.host}:{viewer.server.get_port()}", flush=True)
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
