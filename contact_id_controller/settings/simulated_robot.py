"""Everything a user can set on the simulated robot."""

from __future__ import annotations

import dataclasses

from contact_id_controller.settings.base import Settings
from contact_id_controller.settings.shared_rows import RobotRows, contact_radii
from contact_id_controller.settings.specification import parameter


@dataclasses.dataclass(frozen=True)
class SimulatedRobotSettings(RobotRows, Settings):
    """Settings of the simulated robot; names shared with the controller mean the same there."""

    # The robot
    contact_radii_m: tuple[float, ...] = contact_radii(0.01, 1e-4)
    initial_joint_positions: tuple[float, ...] = parameter(
        (),
        """Joint angles at the start, in the order of joints; empty: all zero. The base starts
        level, as high as lets the lowest foot touch the ground.""",
        unit="rad",
    )

    # The physics
    period_s: float = parameter(
        0.001,
        "Control period: a state is published, and a command applied, once each.",
        unit="s",
        minimum=1e-4,
        maximum=0.1,
    )
    substeps: int = parameter(
        1, "Integration steps in each control period.", minimum=1, maximum=100
    )
    friction_coefficient: float = parameter(
        0.6,
        "Coulomb friction between feet and ground; more than 100 counts as 100.",
        minimum=0.0,
        infinite=True,
    )
    ground_time_constant_s: float = parameter(
        0.004,
        "Time constant of the contacts; 0.02 with ground_impedance [0.9, 0.95] is soft.",
        unit="s",
        minimum=1e-4,
        maximum=1.0,
    )
    ground_impedance: tuple[float, ...] = parameter(
        (0.99, 0.999),
        "Hardness of the ground at first touch and at 1 mm depth, between 0 and 1.",
        minimum=1e-4,
        maximum=0.9999,
    )

    # The run
    mode: str = parameter(
        "real_time",
        """real_time: one period of simulation takes one period of the wall clock, divided by
        real_time_factor. lockstep: the simulation advances when the command for its state has
        arrived, however long that takes.""",
        choices=("real_time", "lockstep"),
    )
    real_time_factor: float = parameter(
        1.0,
        """real_time only: simulated time that passes in a second of the wall clock; below 1 where
        the machine is too slow for real time. Time-outs by the wall clock then see fewer states.""",
        minimum=0.01,
        maximum=1.0,
    )
    reliable_topics: bool = parameter(
        False,
        """Reliable instead of best-effort states and commands; both ends must agree. Implied by
        lockstep.""",
    )
    duration_s: float = parameter(
        0.0,
        "The node ends by itself after this much simulated time; 0: never.",
        unit="s",
        minimum=0.0,
    )
    stop_when_fallen: bool = parameter(
        True, "The node ends when the robot has fallen; only feet touch the ground, it would sink."
    )
    command_timeout_s: float = parameter(
        10.0,
        """lockstep only: wall time after which a missing command or plan ends the simulation with
        an error.""",
        unit="s",
        minimum=0.01,
    )
    wait_for_plan_s: float = parameter(
        0.0,
        """lockstep only: start with the first joint_trajectory, and never advance further than
        this past the stamp of the newest one, so that a planner in another process cannot fall
        behind; longer than the planner's period plus the 10 ms between clock messages. 0: off.""",
        unit="s",
        minimum=0.0,
    )
    record_path: str = parameter(
        "", "File (.npz) into which every period is recorded, written at the end; empty: none."
    )

    def check_together(self) -> None:
        """Raise ConfigurationError when the robot is not named."""
        self.require("urdf", "a robot description")

    @property
    def reliable(self) -> bool:
        """Whether states and commands are sent reliably."""
        return self.reliable_topics or self.mode == "lockstep"

    @property
    def wall_period_s(self) -> float:
        """Wall time of one period in real time."""
        return self.period_s / self.real_time_factor
