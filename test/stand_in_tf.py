"""What publishes on /tf, where tf2_msgs exists: it has no package on PyPI, its message has one field."""

import copy
import dataclasses
import importlib.util
import sys
import types


class FakeNode:
    """Keeps what its publishers publish, by topic."""

    listeners = 1

    def __init__(self):
        self.published = {}

    def create_publisher(self, kind, topic, qos):
        heard = self.published.setdefault(topic, [])
        return types.SimpleNamespace(
            handle=types.SimpleNamespace(publish_raw=heard.append),
            publish=lambda message: heard.append(copy.deepcopy(message)),
            get_subscription_count=lambda: self.listeners,
        )


def with_tf(module, monkeypatch):
    """A module as it is where tf2_msgs can be imported."""
    message = dataclasses.make_dataclass("TFMessage", ["transforms"])
    monkeypatch.setitem(sys.modules, "tf2_msgs", types.ModuleType("tf2_msgs"))
    monkeypatch.setitem(sys.modules, "tf2_msgs.msg", types.SimpleNamespace(TFMessage=message))
    spec = importlib.util.spec_from_file_location("with_tf", module.__file__)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found
