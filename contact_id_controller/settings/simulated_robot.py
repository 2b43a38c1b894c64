"""Everything a user can set on the simulated robot."""

from __future__ import annotations

import dataclasses
from typing import Any

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings.robot_rows import RobotRows
from contact_id_controller.settings.shared_rows import (
    JOINT_TRAJECTORY,
    LOCAL_GAINS,
    command_interface,
    contact_radii,
    local_gain,
)
from contact_id_controller.settings.specification import parameter

OF_PRESET = -1.0
"""A sensor's value that stands for that of the preset."""

_REFUSED = "refused with command_interface joint_trajectory"


def sensor_value(what: str, unit: str, maximum: float = 1e3) -> Any:
    """The row of something that is wrong with a sensor."""
    return parameter(
        OF_PRESET,
        f"{what}; {OF_PRESET:g}: that of the preset.",
        unit=unit,
        minimum=OF_PRESET,
        maximum=maximum,
    )


@dataclasses.dataclass(frozen=True)
class SimulatedRobotSettings(RobotRows):
    """Settings of the simulated robot; names shared with the controller mean the same there."""

    # The robot
    contact_radii_m: tuple[float, ...] = contact_radii(0.01, 1e-4)
    initial_joint_positions: tuple[float, ...] = parameter(
        (),
        """Joint angles at the start, in the order of joints; empty: all zero. The base starts
        level, as high as lets the lowest foot touch the ground.""",
        unit="rad",
    )
    initial_base: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0), "Where a floating base starts: x, y, m, and heading, rad."
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

    # Its own feedback
    command_interface: str = command_interface()
    local_position_gain: tuple[float, ...] = local_gain("position", "N·m/rad", _REFUSED)
    local_velocity_gain: tuple[float, ...] = local_gain("velocity", "N·m·s/rad", _REFUSED)

    # What happens to it
    torque_delay_s: float = parameter(
        0.0,
        "Torques act so much later, in whole periods, beyond the period that they are held for.",
        unit="s",
        minimum=0.0,
        maximum=1.0,
    )
    push_times_s: tuple[float, ...] = parameter(
        (), "Simulated times at which the robot is pushed.", unit="s", minimum=0.0
    )
    push_impulses_ns: tuple[float, ...] = parameter(
        (),
        "Impulse of each push along the axes of the world: three values for all, or three per push.",
        unit="N·s",
    )
    push_duration_s: float = parameter(
        0.1, "How long each push lasts.", unit="s", minimum=1e-3, maximum=60.0
    )
    push_body: str = parameter("", "Link that is pushed at its centre of mass; empty: the base.")

    # The sensors
    sensors: str = parameter(
        "perfect",
        """What joint_states, imu and wrench/<sensor> are made of. good: joint torque sensors and a good
        IMU; motor_currents: efforts from currents (gain error, friction); cheap: hobby parts.""",
        choices=("perfect", "good", "motor_currents", "cheap"),
    )
    sensor_seed: int = parameter(
        0, "The same seed draws the same noise, biases and gain errors.", minimum=0
    )
    imu_frame: str = parameter(
        "", "Frame of the IMU; empty: the base. A robot bolted to the ground has none unless named."
    )
    force_torque_sensors: tuple[str, ...] = parameter(
        (),
        """Joints, or contact frames, with a six-axis force/torque sensor: topics wrench/<name>. A
        joint's: what the inner link does to the outer one, in the outer link's axes.""",
    )
    gyroscope_noise_rad_s: float = sensor_value("White noise of each sample", "rad/s")
    gyroscope_bias_rad_s: float = sensor_value("Deviation of the constant bias", "rad/s")
    accelerometer_noise_m_s2: float = sensor_value("White noise of each sample", "m/s2")
    accelerometer_bias_m_s2: float = sensor_value("Deviation of the constant bias", "m/s2")
    position_noise_rad: float = sensor_value("White noise of joint positions", "rad")
    position_step_rad: float = sensor_value("What an encoder resolves", "rad")
    velocity_noise_rad_s: float = sensor_value("White noise of joint velocities", "rad/s")
    effort_noise_nm: float = sensor_value("White noise of joint efforts", "N·m")
    effort_gain_error: float = sensor_value("Deviation of each joint's constant gain", "", 1.0)
    effort_friction_nm: float = sensor_value(
        "Coulomb friction that the measured effort contains and the joint does not get", "N·m"
    )
    force_noise_n: float = sensor_value("White noise of force/torque sensors, force", "N")
    moment_noise_nm: float = sensor_value("White noise of force/torque sensors, moment", "N·m")
    sensor_delay_s: float = sensor_value(
        "Age of all readings, which their stamps do not tell", "s", 0.1
    )
    ground_truth_topics: str = parameter(
        "shared",
        """What no robot can know, odometry and ground_reaction/<frame>, has these names (shared: a
        controller uses it as if it were measured), or ground_truth/ before them (separate: the names
        are free for an estimator), with ground_truth/contact_states.""",
        choices=("shared", "separate"),
    )

    publish_robot: bool = parameter(
        False,
        """Publish the URDF on /robot_description and, where tf2_msgs is there, all links on /tf, 50
        times a second: RViz then draws the robot without robot_state_publisher, which must not run.""",
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
        self.refuse_repeated("force_torque_sensors")
        self.check_feet()
        missing = [name for name in LOCAL_GAINS if not getattr(self, name)]
        if missing and self.command_interface == JOINT_TRAJECTORY:
            raise ConfigurationError(
                f"parameter '{missing[0]}' is empty, command_interface {JOINT_TRAJECTORY} needs it: "
                "contact_id check says which value fits"
            )
        _ = self.locked, self.pushes
        if len(self.initial_base) != 3:
            raise ConfigurationError(
                f"parameter 'initial_base' has {len(self.initial_base)} values, must have 3: x, y, "
                "heading"
            )
        for name in self.sensor_changes:
            if getattr(self, name) < 0.0:
                raise ConfigurationError(
                    f"parameter '{name}' is {getattr(self, name):g}, must be at least 0, or "
                    f"{OF_PRESET:g} for that of the preset"
                )

    @property
    def pushes(self) -> list[tuple[float, float, tuple[float, ...]]]:
        """Start, s, duration, s, and impulse (3,), N·s, of each push.

        Raises:
            ConfigurationError: neither three numbers of an impulse nor three for each push.
        """
        count, values = len(self.push_times_s), self.push_impulses_ns
        if len(values) not in (3, 3 * count) and count:
            raise ConfigurationError(
                f"parameter 'push_impulses_ns' has {len(values)} values, must have 3, or 3 for each "
                f"of {count} pushes"
            )
        rows = [values[k : k + 3] for k in range(0, len(values), 3)]
        if len(rows) == 1:
            rows *= count
        return [(time_s, self.push_duration_s, row) for time_s, row in zip(self.push_times_s, rows)]

    @property
    def sensor_changes(self) -> dict[str, float]:
        """What is wrong with the sensors, where it is not as in the preset."""
        rows = (field for field in dataclasses.fields(self) if field.default == OF_PRESET)
        values = {row.name: getattr(self, row.name) for row in rows}
        return {name: value for name, value in values.items() if value != OF_PRESET}

    @property
    def reliable(self) -> bool:
        """Whether states and commands are sent reliably."""
        return self.reliable_topics or self.mode == "lockstep"

    @property
    def wall_period_s(self) -> float:
        """Wall time of one period in real time."""
        return self.period_s / self.real_time_factor
