"""Set-ups of RViz, PlotJuggler and Foxglove name topics that our nodes have, and their fields."""

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
import yaml
from paths import ROOT

from contact_id_controller.settings import endpoints

RVIZ = ROOT / "config" / "rviz" / "contact_id.rviz"
PLOTJUGGLER = ROOT / "config" / "plotjuggler" / "contact_id.xml"
FOXGLOVE = ROOT / "config" / "foxglove" / "contact_id.json"


def _topics(direction):
    """Whole names of what our nodes publish or subscribe."""
    found = set()
    for node in endpoints.NODES:
        for name in getattr(endpoints.endpoints_of(node), direction):
            found.add(
                name.replace("~", f"/{node}", 1) if name[0] == "~" else f"/{name.lstrip('/')}"
            )
    return found


def _rviz():
    return yaml.safe_load(RVIZ.read_text(encoding="utf-8"))["Visualization Manager"]


def _curves():
    root = ElementTree.parse(PLOTJUGGLER).getroot()
    return [curve.attrib["name"] for curve in root.iter("curve")]


def _foxglove():
    return json.loads(FOXGLOVE.read_text(encoding="utf-8"))


def _paths():
    panels = _foxglove()["configById"].values()
    return [path["value"] for panel in panels for path in panel.get("paths", ())]


def test_rviz_shows_and_sends_what_our_nodes_publish_and_hear():
    shown = [
        display[key]["Value"]
        for display in _rviz()["Displays"]
        for key in ("Topic", "Description Topic")
        if key in display
    ]
    assert len(shown) >= 5 and set(shown) <= _topics("publishes")
    sent = [tool["Topic"]["Value"] for tool in _rviz()["Tools"] if "Topic" in tool]
    assert sent and set(sent) <= _topics("subscribes")


def test_foxglove_shows_what_our_nodes_publish():
    panels = _foxglove()["configById"]
    shown = [topic for panel in panels.values() for topic in panel.get("topics", ())]
    shown += [panel["topicToRender"] for panel in panels.values() if "topicToRender" in panel]
    assert len(shown) >= 4 and set(shown) <= _topics("publishes")

    def places(part):
        return [part] if isinstance(part, str) else places(part["first"]) + places(part["second"])

    assert sorted(places(_foxglove()["layout"])) == sorted(panels)


@pytest.mark.parametrize("curves, between", [(_curves, "/"), (_paths, ".")])
def test_curves_are_fields_of_our_topics(curves, between):
    messages = _messages()
    known = _topics("publishes") | _topics("subscribes")
    assert len(curves()) >= 9
    for curve in curves():
        topic = max((name for name in messages if curve.startswith(name + between)), key=len)
        assert topic in known, curve
        value = messages[topic]()
        for field in re.split(r"[/.]|\[", curve[len(topic) + 1 :].replace("]", "")):
            if field.isdigit():
                assert hasattr(value, "append"), curve  # an array: how long it is, the robot says
            else:
                assert hasattr(value, field), curve
                value = getattr(value, field)
        assert isinstance(value, float) or hasattr(value, "append"), curve


def _messages():
    pytest.importorskip("rclpy", reason="needs ROS 2")
    from geometry_msgs.msg import Twist
    from nav_msgs.msg import Odometry
    from sensor_msgs.msg import Imu
    from std_msgs.msg import Float64MultiArray

    return {
        "/commands": Float64MultiArray,
        "/odometry": Odometry,
        "/imu": Imu,
        "/cmd_vel": Twist,
    }
