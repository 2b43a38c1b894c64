"""The controller inside ros2_control, called by its plugin agimus_pytroller/AgimusPytroller.

The plugin imports this module and makes one `ControllerImpl`. It does not hand its YAML to Python:
the environment variable CONTACT_ID_CONFIG names the parameter file of the controller instead. An
error outside of `on_update` would end the whole process of ros2_control; here there is none.
docs/ros2_control.md explains the rest, config/ros2_control/solo12_in_process.yaml is an example.
"""

from __future__ import annotations

import functools
import gc
import math
import os
import sys
from typing import Any

import numpy as np
from agimus_pytroller_py.agimus_pytroller_base import ControllerImplBase

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.plans.plan import Plan
from contact_id_controller.ros import conversions, plan_bytes
from contact_id_controller.ros.conversions import OdometryReader
from contact_id_controller.safety.in_process import InProcessController
from contact_id_controller.settings.parameter_file import load_settings

CONFIG_VARIABLE = "CONTACT_ID_CONFIG"


class ControllerImpl(ControllerImplBase):
    """Called by the plugin; `InProcessController` does the work."""

    def setup(self, **init_msgs: Any) -> None:
        """Load the parameter file and compile; the given messages are not used.

        Raises:
            ConfigurationError: CONFIG_VARIABLE is not set, or the file has a mistake: configure then
                fails with this line.
        """
        path = os.environ.get(CONFIG_VARIABLE)
        if not path:
            raise ConfigurationError(
                f"environment variable {CONFIG_VARIABLE} is not set, must name a parameter file"
            )
        log = functools.partial(print, "contact_id:", file=sys.stderr, flush=True)
        self.inner = InProcessController(load_settings(path), log)
        plan_bytes.warm_up()
        self._odometry = OdometryReader()
        self._frames = self.inner.controller.settings.foot_frames
        self._forces = np.zeros((len(self._frames), 3))
        for k, frame in enumerate(self._frames):
            # Force of the ground on one frame: geometry_msgs/WrenchStamped.
            take = functools.partial(self.inner.guarded, "contact", self._take_ground_reaction, k)
            setattr(self, f"ground_reaction_{frame}_cb", take)
        # All objects that exist now are permanent: exclude them from garbage collection.
        gc.collect()
        gc.freeze()

    def on_update(self, state: np.ndarray) -> np.ndarray:
        """Efforts (na,), N·m, for the positions and velocities of the input interfaces."""
        return self.inner.update(state)

    def on_post_update(self) -> None:
        """Log refusals and errors."""
        self.inner.post_update()

    def odometry_cb(self, message: Any) -> None:
        """State of the floating base: nav_msgs/Odometry."""
        self.inner.guarded("odometry", self._take_odometry, message)

    def contact_states_cb(self, message: Any) -> None:
        """Measured contact: sensor_msgs/JointState, names are frames, position 1 is contact."""
        self.inner.guarded("contact", self._take_contact_states, message)

    def joint_trajectory_cb(self, message: Any) -> None:
        """Plan of the joints: trajectory_msgs/JointTrajectory."""
        moving = self.inner.controller.settings.allow_moving_trajectory_end
        self.inner.follow(
            lambda: Plan(conversions.joint_trajectory(message, moving)),
            "joint_trajectory",
            plan_bytes.is_long(message),
        )

    def base_trajectory_cb(self, message: Any) -> None:
        """Plan of the base: trajectory_msgs/MultiDOFJointTrajectory."""
        self.inner.follow(
            lambda: Plan(base=conversions.base_trajectory(message)),
            "base_trajectory",
            plan_bytes.is_long(message),
        )

    def contact_schedule_cb(self, message: Any) -> None:
        """Planned contacts: trajectory_msgs/JointTrajectory, see `conversions`."""
        self.inner.follow(
            lambda: Plan(contacts=conversions.contact_schedule(message)),
            "contact_schedule",
            plan_bytes.is_long(message),
        )

    def emergency_stop_cb(self, message: Any) -> None:
        """Engage (true) or release (false) the emergency stop: std_msgs/Bool."""
        self.inner.guarded("emergency_stop", lambda: self.inner.emergency_stop(message.data))

    def resume_cb(self, message: Any) -> None:
        """Leave a stop: std_msgs/Empty. Odometry may come in other frames from then on."""
        self._odometry.forget_frames()
        self.inner.resume()

    def _take_odometry(self, message: Any) -> None:
        self.inner.guard.take_base(*self._odometry.read(message))

    def _take_contact_states(self, message: Any) -> None:
        known = dict(zip(message.name, message.position))
        self.inner.take_contact_states([known.get(frame, math.nan) for frame in self._frames])

    def _take_ground_reaction(self, k: int, message: Any) -> None:
        force = message.wrench.force
        self._forces[k] = force.x, force.y, force.z
        self.inner.take_contact_forces(self._forces, np.arange(len(self._frames)) == k)
