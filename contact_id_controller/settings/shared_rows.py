"""Parameters that several nodes have, with one meaning."""

from __future__ import annotations

from typing import Any

from contact_id_controller.settings import command_interfaces
from contact_id_controller.settings.specification import parameter

ODOMETRY_AGE_LIMIT_S = 0.1
"""Largest age of odometry that planners use; default of the controller's odometry_age_limit_s."""

CONFIGURE_S = 600.0
"""Longest time for a node to be configured: it compiles its kernels the first time."""

START_ONLY = (
    *("record_path", "effort_above_description", "state_folder", "urdf", "mode"),
    *("second_commander", "commanders", "watchdog_required", "planner_required", "stamp_reference"),
)
"""Rows that can only be given at the start of a node: other nodes may not change what they allow."""


def state_folder() -> Any:
    """The row of ``state_folder``."""
    return parameter(
        "",
        """Folder of the file that keeps an engaged emergency stop until it is released (safety.md). Empty:
        contact_id_controller in XDG_STATE_HOME, or in ~/.local/state. Only as given at the start of the
        node.""",
        when="Set where the home folder is not kept, as in a container.",
    )


def emergency_stop_output(*, live: bool) -> Any:
    """The row of ``emergency_stop_output``."""
    return parameter(
        "zero",
        "Published while the emergency stop is engaged: zero, or damping.",
        when="damping for robots that do harm when they drop.",
        choices=("zero", "damping"),
        live=live,
    )


def group_controller(when: str) -> Any:
    """The row of ``group_controller``; ``when`` its joints are compared."""
    return parameter(
        "",
        f"""Name of the ros2_control group controller that takes the commands: {when} its parameter
        joints is compared with ours. Empty: no check.""",
        when="Set with ros2_control.",
    )


def full_names(values: tuple[str, ...]) -> str:
    """The requirement on names of nodes, to complete a message; empty if these meet it."""
    return (
        ""
        if all(name[:1] == "/" != name for name in values)
        else "be full names, such as /controller"
    )


STOP, REPORT = "stop", "report"
"""Values of ``second_commander``."""

AS_FAST_AS_IT_CAN = 0
"""Value of ``solve_every``."""

LOCAL_GAINS = ("local_position_gain", "local_velocity_gain")
"""Rows of the local feedback's gains."""


def command_interface() -> Any:
    """The row of ``command_interface``."""
    return parameter(
        command_interfaces.DEFAULT,
        command_interfaces.description(),
        when=f"All but {command_interfaces.TORQUES_ONLY} where the robot's side shall go on while this node is late.",
        choices=tuple(command_interfaces.INTERFACES),
    )


GREATEST_LOCAL_GAIN = 1e5
"""Largest gain of the local feedback, which acts on the robot's side without this package, N·m/rad and N·m·s/rad."""


def local_gain(what: str, unit: str, empty: str) -> Any:
    """The row of ``local_position_gain`` or ``local_velocity_gain``; ``empty``: meaning of an empty list."""
    return parameter(
        (),
        f"Local feedback: torque per joint {what} error, at the robot's rate; empty: {empty}.",
        when="Set to what contact_id check proposes.",
        unit=unit,
        minimum=0.0,
        maximum=GREATEST_LOCAL_GAIN,
        per="joint",
    )


def contact_radii(default_m: float, minimum_m: float) -> Any:
    """The row of ``contact_radii_m``."""
    return parameter(
        (default_m,),
        "Radius of the round feet.",
        when="Set to the radius of the sphere of rubber.",
        unit="m",
        minimum=minimum_m,
        per="round foot",
    )


def autostart() -> Any:
    """The row of ``autostart``."""
    return parameter(
        False,
        "Configure and activate at start, without a lifecycle manager.",
        when="Set true where no lifecycle manager starts the nodes.",
    )


def record_path(what: str, more: str = "") -> Any:
    """The row of ``record_path``; ``what``: what is written into the file."""
    return parameter(
        "",
        f"File (.npz) into which {what}; empty: none.{more}",
        when="Set to look at a run afterwards with `contact_id report` or replay it.",
    )
