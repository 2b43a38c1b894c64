"""When the controller's process looks for garbage: never for long while it commands."""

import gc
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from contact_id_controller.ros.scheduling import GarbageBreak


@pytest.fixture
def collections():
    """Objects that each collection had to look at."""
    seen = []

    def count(phase, info):
        if phase == "start":
            seen.append(len(gc.get_objects()))

    gc.callbacks.append(count)
    yield seen
    gc.callbacks.remove(count)
    gc.unfreeze()
    gc.enable()


def test_what_configure_made_is_searched_before_activation_and_not_after(collections):
    node = SimpleNamespace(loop=None, active=False)
    between = GarbageBreak(lambda: node.loop is not None, lambda: node.active, pytest.fail)
    between()
    assert collections == [] and gc.get_freeze_count() == 0
    node.loop = object()
    between()
    kept = gc.get_freeze_count()  # of what was searched: garbage of other tests is gone by now
    assert len(gc.get_objects()) < 0.1 * kept and gc.isenabled()
    node.active = True
    between()
    assert collections[-1] < 0.1 * kept and not gc.isenabled()
    node.active = False
    between()
    assert gc.isenabled() and gc.get_freeze_count() > 0
    node.loop = None
    between()
    assert gc.get_freeze_count() == 0
