"""No peer and no file lifts a limit above the machine's: the URDF is the ceiling."""

import math

import numpy as np
import pytest
from robots import QUADRUPED, QUADRUPED_FEET

from contact_id_controller.control.controller import Controller
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.safety.in_process import InProcessController
from contact_id_controller.settings.controller import TABLE, ControllerSettings

LIMIT_NM = 20.0
VALUES = {"urdf": QUADRUPED, "contact_frames": QUADRUPED_FEET, "contact_radii_m": [0.01]}


def settings(**changes):
    return ControllerSettings.from_mapping({**VALUES, **changes})


@pytest.mark.parametrize(
    "limits", [[math.inf], [49.5], [20.001], [20.0] * 11 + [21.0], [math.inf] * 12]
)
def test_more_than_the_description_states_is_refused(limits):
    made = settings(effort_limits_nm=limits)
    with pytest.raises(ConfigurationError, match="the URDF states 20: more needs 'effort_above"):
        Controller(made.robot(), made)
    with pytest.raises(ConfigurationError, match="'effort_limits_nm' is "):
        InProcessController(made)


@pytest.mark.parametrize("limits", [[], [LIMIT_NM], [1.0], [5.0] * 12])
def test_as_much_or_less_stays(limits):
    made = settings(effort_limits_nm=limits)
    assert (Controller(made.robot(), made).effort_limits <= LIMIT_NM).all()


def test_the_flag_says_that_it_may_be():
    made = settings(effort_limits_nm=[25.0], effort_above_description=True)
    assert np.array_equal(Controller(made.robot(), made).effort_limits, np.full(12, 25.0))


def test_gains_end_somewhere():
    gains = [row for row in TABLE if "_gain" in row.name or row.name == "damping_nm_s_rad"]
    assert len(gains) >= 8
    for row in gains:
        assert math.isfinite(row.maximum) and not row.infinite, row.name
        with pytest.raises(ConfigurationError, match=row.name):
            row.check([1e30] if row.kind == "numbers" else 1e30)


def test_no_peer_lifts_the_ceiling_while_it_runs(node_within):
    from rclpy.parameter import Parameter

    from contact_id_controller.ros.controller import ControllerNode

    node = node_within(ControllerNode, **VALUES)

    def asked(name, value):
        return node.set_parameters([Parameter(name, value=value)])[0]

    for moment in ("before configure", "configured"):
        answer = asked("effort_above_description", True)
        assert not answer.successful and "at the start" in answer.reason, moment
        if moment == "before configure":
            asked("effort_limits_nm", [math.inf])
            assert node.trigger_configure().name == "FAILURE"
            assert asked("effort_limits_nm", [LIMIT_NM]).successful
            assert node.trigger_configure().name == "SUCCESS"
    for value in ([math.inf], [49.5]):
        answer = asked("effort_limits_nm", value)
        assert not answer.successful and "the URDF states 20" in answer.reason
    assert asked("effort_limits_nm", [10.0]).successful
    node._apply_changes()
    assert (node.loop.controller.effort_limits == 10.0).all()
