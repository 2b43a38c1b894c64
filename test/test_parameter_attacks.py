"""What a peer may not do by parameters: write files, leave the node poisoned, keep it busy."""

from types import SimpleNamespace

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="parameters of a node need ROS 2")

from rcl_interfaces.msg import Parameter as ParameterMessage  # noqa: E402
from rcl_interfaces.msg import ParameterValue, SetParametersResult  # noqa: E402
from rcl_interfaces.srv import (  # noqa: E402
    GetParameters,
    ListParameters,
    SetParameters,
    SetParametersAtomically,
)
from rclpy.parameter import Parameter  # noqa: E402
from robots import QUADRUPED, QUADRUPED_FEET  # noqa: E402

from contact_id_controller.exceptions import ConfigurationError, RecordError  # noqa: E402
from contact_id_controller.files import write_arrays  # noqa: E402
from contact_id_controller.ros import parameter_service  # noqa: E402
from contact_id_controller.ros.controller import ControllerNode  # noqa: E402
from contact_id_controller.ros.declared_parameters import refuse_size  # noqa: E402
from contact_id_controller.ros.step_recording import EstimateRecorder, Recorder  # noqa: E402

TEXT, DOUBLE, DOUBLES, TEXTS = 4, 3, 8, 9
VALUES = {
    "urdf": QUADRUPED,
    "contact_frames": QUADRUPED_FEET,
    "contact_radii_m": [0.01],
}


@pytest.fixture
def node_of(node_within):
    """Makes controller nodes with overrides."""
    return lambda **changes: node_within(ControllerNode, **{**VALUES, **changes})


def ask(node, name, atomically=False, **value):
    """Answer of the parameter service: successful, reason."""
    message = ParameterMessage(name=name, value=ParameterValue(**value))
    service = node._parameter_service
    if atomically:
        request = SetParametersAtomically.Request(parameters=[message])
        answer = service._set_parameters_atomically_callback(
            request, SetParametersAtomically.Response()
        ).result
    else:
        request = SetParameters.Request(parameters=[message])
        answer = service._set_parameters_callback(request, SetParameters.Response()).results[0]
    return answer.successful, answer.reason


@pytest.mark.parametrize("atomically", [False, True])
def test_no_peer_says_where_a_file_is_written(node_of, tmp_path, atomically):
    own, foreign = str(tmp_path / "run.npz"), str(tmp_path / "other")
    node = node_of(record_path=own)
    done, reason = ask(node, "record_path", atomically, type=TEXT, string_value=foreign)
    assert not done and "'record_path' can only be given at the start" in reason
    assert node.get_parameter("record_path").value == own
    assert ask(node, "record_path", type=TEXT, string_value=own)[0], "the same is no change"
    del node
    node = node_of()
    assert not ask(node, "record_path", atomically, type=TEXT, string_value=foreign)[0]


@pytest.mark.parametrize("atomically", [False, True])
@pytest.mark.parametrize(
    "value", [{"type": 0}, {"type": DOUBLE, "double_value": 1.0}, {"type": TEXT}]
)
def test_a_parameter_without_a_name_is_refused_and_leaves_no_trace(node_of, atomically, value):
    node = node_of()
    before = node._parameters.copy()
    done, reason = ask(node, "", atomically, **value)
    assert not done and reason
    assert node._parameters.keys() == before.keys()
    assert ask(node, "period_s", type=DOUBLE, double_value=0.002)[0], "the node is sane"
    assert node._parameter_table.values()["period_s"] == 0.002


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("joint_position_gain", {"double_array_value": [1.0] * 1_000_000}, "1000000 values"),
        ("joints", {"string_array_value": ["a"] * 100_000}, "100000 values"),
        ("joints", {"string_array_value": ["a" * 100_000]}, "100000 characters"),
        ("urdf", {"string_value": "a" * 1_000_000}, "1000000 characters"),
    ],
)
def test_a_value_longer_than_any_is_refused_at_sight(node_of, name, value, words):
    node = node_of()
    kind = {"double_array_value": DOUBLES, "string_array_value": TEXTS, "string_value": TEXT}
    parameter = Parameter(name, value=next(iter(value.values())))
    result = node._parameter_table._check_set([parameter])
    assert not result.successful and words in result.reason and len(result.reason) < 500
    done, reason = ask(node, name, type=kind[next(iter(value))], **value)
    assert not done and words in reason


def test_nothing_looks_at_the_values_of_a_list_that_is_too_long():
    class Untouchable(list):
        def __iter__(self):
            raise AssertionError("looked at")

    with pytest.raises(ConfigurationError, match="has 1001 values, must have at most 1000"):
        refuse_size("joints", Untouchable([0.0] * 1001))


def test_a_long_bad_value_is_not_repeated_in_full(node_of):
    value = {"string_array_value": ["wrong" * 100] * 900}
    done, reason = ask(node_of(), "contact_sources", type=TEXTS, **value)
    assert not done and len(reason) <= 500


FOREIGN = {
    "text": lambda path: path.write_text("thesis", encoding="utf-8"),
    "other arrays": lambda path: write_arrays(path, {"results": np.arange(3)}),
    "folder": lambda path: path.mkdir(),
    "empty": lambda path: path.touch(),
}


def _estimates(path):
    return EstimateRecorder(path, SimpleNamespace(nq=8, nv=7), ["f"])


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("make", [lambda path: Recorder(path, ["a"], ["f"]), _estimates])
def test_a_record_replaces_nothing_but_a_record(tmp_path, make, foreign):
    path = tmp_path / "mine.npz"
    FOREIGN[foreign](path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(RecordError, match="mine.npz"):
        make(path)
    if before is not None:
        assert path.read_bytes() == before


def test_a_record_replaces_a_record_and_no_file_that_came_since(tmp_path):
    path = tmp_path / "mine.npz"
    for _ in range(2):
        recorder = _estimates(path)
        recorder.save()
    recorder = _estimates(path)
    path.write_text("thesis", encoding="utf-8")
    with pytest.raises(RecordError, match="is no record"):
        recorder.save()
    assert path.read_text(encoding="utf-8") == "thesis"


def test_a_link_in_the_way_of_a_part_is_not_followed(tmp_path):
    import os

    path, target = tmp_path / "mine.npz", tmp_path / "thesis"
    target.write_text("thesis", encoding="utf-8")
    (tmp_path / f"mine.npz.{os.getpid()}.part").symlink_to(target)
    _estimates(path).save()
    assert target.read_text(encoding="utf-8") == "thesis"
    assert not path.is_symlink() and "time_s" in np.load(path)


@pytest.mark.parametrize("atomically", [False, True])
@pytest.mark.parametrize(
    "value, words",
    [
        ({"type": 77}, "has type 77, must be one of 1 to 9"),
        ({"type": 10}, "has type 10"),
        ({"type": 255, "double_value": 1.0}, "has type 255"),
        ({"type": DOUBLE, "string_value": "0.002"}, "its string_value is given"),
        ({"type": TEXT, "double_value": 0.002}, "its double_value is given"),
        ({"type": DOUBLE, "double_array_value": [0.002]}, "its double_array_value is given"),
        ({"type": 0, "double_value": 0.002}, "its double_value is given"),
        ({"type": DOUBLE, "double_value": float("nan")}, "period_s"),
    ],
)
def test_a_malformed_value_is_answered_and_changes_nothing(node_of, atomically, value, words):
    """`value.type = 77` ended the process, and the last torque stayed for ever."""
    node = node_of()
    before = node.get_parameter("period_s").value
    done, reason = ask(node, "period_s", atomically, **value)
    assert not done and words in reason
    assert node.get_parameter("period_s").value == before
    assert ask(node, "period_s", type=DOUBLE, double_value=0.002)[0], "the node is sane"


def test_more_than_a_node_has_is_refused_by_its_number(node_of):
    node = node_of()
    many = [ParameterMessage(name="period_s")] * 301
    service = node._parameter_service
    request, answer = SetParameters.Request(parameters=many), SetParameters.Response()
    (result,) = service._set_parameters_callback(request, answer).results
    assert not result.successful and "301 parameters" in result.reason
    names = ["period_s"] * 301
    assert not service._get_parameters_callback(
        GetParameters.Request(names=names), GetParameters.Response()
    ).values
    assert not service._list_parameters_callback(
        ListParameters.Request(prefixes=names), ListParameters.Response()
    ).result.names
    few = service._get_parameters_callback(
        GetParameters.Request(names=names[:2]), GetParameters.Response()
    )
    assert len(few.values) == 2


def test_many_parameters_of_one_request_are_looked_at_once_or_for_a_bounded_time(
    node_of, monkeypatch
):
    """One look at a configured node takes a millisecond: a request of 1,000 kept it for most of a second."""
    node, looks, now = node_of(), [], [0.0]
    monkeypatch.setattr(parameter_service.time, "monotonic", lambda: now[0])

    def check(parameters):
        looks.append(len(parameters))
        now[0] += 0.001
        return SetParametersResult(successful=all(each.value > 0.0 for each in parameters))

    node.add_on_set_parameters_callback(check)

    def answers(values):
        looks.clear()
        request = SetParameters.Request()
        for value in values:
            kind = ParameterValue(type=DOUBLE, double_value=value)
            request.parameters.append(ParameterMessage(name="period_s", value=kind))
        answer = node._parameter_service._set_parameters_callback(request, SetParameters.Response())
        return answer.results

    good = answers([0.002] * 200)
    assert len(good) == 200 and all(each.successful for each in good) and looks == [200]
    few = answers([0.002, -1.0, 0.003])
    assert [each.successful for each in few] == [True, False, True]
    assert node.get_parameter("period_s").value == 0.003
    mixed = answers([0.002] * 199 + [-1.0])
    assert len(mixed) == 200 and len(looks) <= 30
    assert mixed[0].successful and not mixed[-1].successful
    assert "200 parameters in one request" in mixed[-1].reason


def test_no_peer_says_where_an_emergency_stop_is_kept(node_of, tmp_path):
    node = node_of(state_folder=str(tmp_path))
    assert node.latch.path.parent == tmp_path
    done, reason = ask(node, "state_folder", type=TEXT, string_value=str(tmp_path / "other"))
    assert not done and "can only be given at the start" in reason
