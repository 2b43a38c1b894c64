"""Who is at work under a node's name, told by a lock. No ROS here."""

import os
import signal
import time

import pytest

from contact_id_controller.ros.worker_lock import WorkerLock

NAME, ME = "/robot/command_watchdog", os.getpid()
PROGRAM = """
import sys, time
from pathlib import Path
from contact_id_controller.ros.worker_lock import WorkerLock
place = WorkerLock(Path(sys.argv[1]), sys.argv[2])
print(place.claim(int(sys.argv[3])), flush=True)
time.sleep(60.0)
"""


@pytest.fixture
def other(python_of, tmp_path):
    def start(left):
        arguments = [str(tmp_path), NAME, str(1 if left else os.getpid())]
        process = python_of(PROGRAM, *arguments)
        assert process.stdout.readline() == "True\n"
        return process

    return start


def test_one_that_lost_its_keeper_is_ended_and_followed(other, tmp_path):
    process, place = other(left=True), WorkerLock(tmp_path, NAME)
    assert not place.claim(ME) and place.orphan() == process.pid
    assert place.take_over() and process.wait(5.0) == -signal.SIGKILL
    assert place.orphan() is None and place.claim(os.getppid()) and place.claim(os.getppid())
    assert WorkerLock(tmp_path, NAME).orphan() is None, "it has a keeper"
    assert WorkerLock(tmp_path, "/another").claim(ME)


def test_one_with_a_keeper_is_left_alone(other, tmp_path):
    process, place = other(left=False), WorkerLock(tmp_path, NAME)
    assert place.orphan() is None and place.take_over()
    time.sleep(0.05)
    assert process.poll() is None and not place.claim(ME)


def test_words_of_somebody_who_is_gone_or_elsewhere_kill_nobody(other, tmp_path):
    process, place = other(left=True), WorkerLock(tmp_path, NAME)
    words = place.path.read_text()
    process.kill()
    process.wait()
    assert place.path.read_text() == words and place.orphan() is None
    alive = other(left=False)
    for text in ("", "0", f"{alive.pid} of 1 on another machine", "x" * 9999, "\xff\n"):
        place.path.write_text(text, encoding="latin-1")
        assert place.orphan() is None and place.take_over(), text
    assert alive.poll() is None


def test_a_place_that_cannot_be_had_is_not_entered(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    assert not WorkerLock(file, NAME).claim(ME) and WorkerLock(file, NAME).orphan() is None
    place = WorkerLock(tmp_path, NAME)
    place.path.symlink_to(file)
    assert not place.claim(ME) and file.read_text() == ""


def test_what_is_no_file_of_ours_keeps_nobody_waiting(tmp_path):
    place = WorkerLock(tmp_path, NAME)
    os.mkfifo(place.path)
    begun_s = time.monotonic()
    assert place.orphan() is None and not place.claim(ME)
    assert time.monotonic() - begun_s < 1.0
