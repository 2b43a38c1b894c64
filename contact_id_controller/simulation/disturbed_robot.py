"""A simulated robot with delayed torques and pushes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.simulation.mujoco_robot import MujocoRobot
from contact_id_controller.state import RobotState


class Push(NamedTuple):
    """A constant force on a body for a limited time.

    Attributes:
        start_s, duration_s: s.
        impulse: (3,) N·s, world axes, at the body's centre of mass.
    """

    start_s: float
    duration_s: float
    impulse: np.ndarray


class DisturbedRobot:
    """A `MujocoRobot` whose `step` delays torques and applies pushes; all else is that robot's.

    Args:
        robot: that is disturbed.
        delay_periods: delay of the torques in periods; until it has passed the first ones are applied.
        pushes: in any order; they add up.
        body: name of the link that is pushed; empty: the base.

    Raises:
        ConfigurationError: no such link.
    """

    def __init__(
        self,
        robot: MujocoRobot,
        delay_periods: int = 0,
        pushes: Sequence[Push] = (),
        body: str = "",
    ) -> None:
        self._robot, self._waiting = robot, deque[np.ndarray]()
        self._delay_periods, self._pushes = delay_periods, tuple(pushes)
        model = robot.mujoco_model
        names = [model.body(k).name for k in range(1, model.nbody)]
        if body and body not in names:
            raise ConfigurationError(
                f"link {body!r} cannot be pushed; there are {', '.join(filter(None, names))}"
            )
        self._body = model.body(body).id if body else 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._robot, name)

    @property
    def refused_commands(self) -> int:
        """See `SteppedRobot`; the robot itself counts, too."""
        return self._robot.refused_commands

    @refused_commands.setter
    def refused_commands(self, count: int) -> None:
        self._robot.refused_commands = count

    def reset(self, q: np.ndarray, v: np.ndarray | None = None) -> RobotState:
        """See `MujocoRobot.reset`; delayed torques are discarded."""
        self._waiting.clear()
        return self._robot.reset(q, v)

    def step(self, torques: np.ndarray) -> RobotState:
        """Advance one period under the delayed torques and the pushes of this period."""
        if self._pushes:
            now_s = self._robot.mujoco_data.time
            self._robot.mujoco_data.xfrc_applied[self._body, :3] = sum(
                (
                    np.asarray(push.impulse) / push.duration_s
                    for push in self._pushes
                    if push.start_s <= now_s < push.start_s + push.duration_s
                ),
                np.zeros(3),
            )
        if not self._delay_periods:
            return self._robot.step(torques)
        self._waiting.append(np.array(torques))
        if len(self._waiting) > self._delay_periods:
            return self._robot.step(self._waiting.popleft())
        return self._robot.step(self._waiting[0])
