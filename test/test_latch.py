"""An emergency stop that outlives its process."""

import os
import subprocess
import sys
import threading

import pytest
from paths import ROOT
from waiting import until

from contact_id_controller.exceptions import ConfigurationError, ContactIdError
from contact_id_controller.safety import latch as latch_file
from contact_id_controller.safety.latch import EmergencyLatch, state_folder

HOLD = """
import sys, time
from pathlib import Path
from contact_id_controller.safety.latch import EmergencyLatch
latch = EmergencyLatch(Path(sys.argv[1]), "/robot/controller", "solo12")
latch.engage()
print(repr(latch.keep()), flush=True)
time.sleep(60.0)
"""


@pytest.fixture(autouse=True)
def domain(monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", "7")


def test_it_survives_kill_9_and_ends_by_its_release_alone(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "state")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "''\n"
    process.kill()
    process.communicate()
    for _ in range(2):
        latch = EmergencyLatch(tmp_path / "state", "/robot/controller", "solo12")
        assert latch.engaged and not latch.keep()
        assert f"process {process.pid}" in latch.path.read_text()
    assert latch.path == tmp_path / "state/robot.controller.domain7.solo12.emergency_stop"
    assert latch.path.stat().st_mode & 0o077 == 0, "nobody else's to write"
    assert not EmergencyLatch(tmp_path / "state", "/other/controller").engaged
    latch.release()
    assert not latch.engaged and not any((tmp_path / "state").iterdir())
    assert not EmergencyLatch(tmp_path / "state", "/robot/controller", "solo12").engaged
    latch.release()  # of what was never written


def test_one_that_cannot_be_written_stops_nevertheless_and_says_so(tmp_path):
    (tmp_path / "state").write_text("a file")
    latch = EmergencyLatch(tmp_path / "state", "/controller")
    assert not latch.engaged
    latch.engage()
    assert latch.engaged and "will not outlive this process" in latch.keep()
    assert not latch.keep(), "said once"
    latch.release()
    assert not latch.engaged


def test_one_that_cannot_be_removed_stays_engaged(tmp_path):
    latch = EmergencyLatch(tmp_path, "/controller")
    latch.path.mkdir()
    latch = EmergencyLatch(tmp_path, "/controller")
    assert latch.engaged, "whatever is there"
    with pytest.raises(ContactIdError, match="stays engaged"):
        latch.release()
    assert latch.engaged


def test_one_that_cannot_be_looked_at_counts_as_engaged(tmp_path, monkeypatch):
    def refused(path, **options):
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", refused)
        assert EmergencyLatch(tmp_path, "/controller").engaged
    assert not EmergencyLatch(tmp_path, "/controller").engaged


def test_file_and_folder_are_synced_to_the_disk(tmp_path, monkeypatch):
    synced, sync = [], os.fsync
    monkeypatch.setattr(
        os,
        "fsync",
        lambda handle: (synced.append(os.readlink(f"/proc/self/fd/{handle}")), sync(handle)),
    )
    latch = EmergencyLatch(tmp_path, "/controller")
    latch.engage()
    assert not latch.keep()
    assert os.path.dirname(synced[0]) == str(tmp_path) == synced[1]


def test_a_link_in_the_way_of_its_part_is_not_followed(tmp_path):
    thesis = tmp_path / "thesis"
    thesis.write_text("thesis")
    latch = EmergencyLatch(tmp_path, "/controller")
    latch.path.with_name(f"{latch.path.name}.{os.getpid()}.part").symlink_to(thesis)
    latch.engage()
    assert not latch.keep() and not latch.path.is_symlink()
    assert thesis.read_text() == "thesis"


def test_a_disk_that_hangs_keeps_nobody_waiting(tmp_path, monkeypatch):
    goes_on, put = threading.Event(), latch_file._put

    def hanging(file, words):
        goes_on.wait(120.0)
        put(file, words)

    monkeypatch.setattr(latch_file, "_put", hanging)
    latch = EmergencyLatch(tmp_path, "/controller")
    latch.engage()
    assert "not yet written" in latch.keep() and latch.engaged
    with pytest.raises(ContactIdError, match="still being written"):
        latch.release()
    goes_on.set()
    assert until(latch.path.exists)
    latch._writer.join(120.0)
    latch.release()
    assert not latch.engaged and not latch.path.exists()


def test_where_no_thread_can_be_started_it_is_written_down_all_the_same(tmp_path, monkeypatch):
    def refused(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    latch = EmergencyLatch(tmp_path, "/controller")
    latch.engage()
    assert latch.keep() == "" and latch.path.exists()
    latch.release()
    assert not latch.path.exists()


def test_where_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert state_folder() == tmp_path / "xdg/contact_id_controller"
    assert state_folder(str(tmp_path)) == tmp_path
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_folder() == tmp_path / ".local/state/contact_id_controller"
    assert EmergencyLatch(tmp_path, "in_process", "a robot/../x").path.parent == tmp_path
    longest = EmergencyLatch(tmp_path, "/" + 200 * "n", 300 * "r")
    assert not longest.engaged, "a name too long for a file would count as engaged"
    longest.engage()
    assert not longest.keep() and longest.path.exists()
    assert not EmergencyLatch(tmp_path, "/" + 200 * "n", 299 * "r").engaged


def engaged(folder, *names, **options):
    """A latch whose stop is engaged and written down."""
    latch = EmergencyLatch(folder, *names, **options)
    latch.engage()
    assert not latch.keep()
    return latch


def test_it_is_of_one_domain_one_node_and_one_robot(tmp_path, monkeypatch):
    mine = ("/controller", "solo12")
    latch = engaged(tmp_path, *mine)
    others = [
        EmergencyLatch(tmp_path, "/command_watchdog", "solo12"),
        EmergencyLatch(tmp_path, "/controller", "go2"),
        EmergencyLatch(tmp_path, *mine, simulated=True),
    ]
    monkeypatch.setenv("ROS_DOMAIN_ID", "8")
    others.append(EmergencyLatch(tmp_path, *mine))
    for other in others:
        assert not other.engaged
        other.engage()
        assert not other.keep()
        other.release()
    monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    assert EmergencyLatch(tmp_path, *mine).engaged
    latch.release()
    assert not any(tmp_path.iterdir())


def test_no_domain_is_domain_0(tmp_path, monkeypatch):
    names = []
    for domain in ("", "0", None):
        monkeypatch.delenv("ROS_DOMAIN_ID")
        if domain is not None:
            monkeypatch.setenv("ROS_DOMAIN_ID", domain)
        names.append(EmergencyLatch(tmp_path, "/controller", "solo12").path.name)
        monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    assert set(names) == {"controller.domain0.solo12.emergency_stop"}


def test_whoever_neither_engaged_nor_loaded_it_does_not_remove_it(tmp_path):
    bystander = EmergencyLatch(tmp_path, "/controller", "solo12")
    latch = engaged(tmp_path, "/controller", "solo12")
    bystander.release()
    assert latch.path.exists(), "its own was not engaged"
    early = EmergencyLatch(tmp_path, "/controller", "solo12")
    words = latch.path.read_text()
    latch.path.unlink()
    engaged(tmp_path, "/controller", "solo12")
    latch.path.write_text(words)  # the same words, as within a second, and another stop
    with pytest.raises(ContactIdError, match="another process has engaged it since"):
        early.release()
    assert early.engaged and latch.path.exists()
    early.release()  # now it knows
    assert not early.engaged and not latch.path.exists()


@pytest.mark.parametrize(
    "old, node, robot",
    [
        ("robot.controller.emergency_stop", "/robot/controller", "solo12"),
        ("controller.emergency_stop", "/controller", ""),
        ("in_process.solo12.emergency_stop", "in_process", "solo12"),
        ("controller.domain7.emergency_stop", "/controller", "solo12"),
    ],
)
def test_a_stop_that_names_no_robot_or_domain_stops_each_it_could_mean(tmp_path, old, node, robot):
    (tmp_path / old).write_text("engaged 2026-11-22T10:00:00Z by process 4242\n")
    assert not EmergencyLatch(tmp_path, node, robot, simulated=True).engaged, (
        "it was no simulation's"
    )
    assert not EmergencyLatch(tmp_path, "/other", robot).engaged
    latch = EmergencyLatch(tmp_path, node, robot)
    assert latch.engaged and not latch.keep()
    assert latch.files == [str(tmp_path / old)]
    latch.release()
    assert not any(tmp_path.iterdir())


def test_a_folder_of_nobody_is_one_line():
    with pytest.raises(
        ConfigurationError, match="'state_folder' is '~nobodyhere/x', must be a folder"
    ):
        state_folder("~nobodyhere/x")
