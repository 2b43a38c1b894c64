"""What the simulated robot says of late commands when it falls."""

import numpy as np

from contact_id_controller.ros.lateness import Lateness
from contact_id_controller.ros.sim_progress import SimulationProgress


def test_commands_in_time_are_not_spoken_of():
    late = Lateness(0.001)
    for number in range(2000):
        late.period(number % 4 > 0)
    assert late.words() == ""


def test_the_longest_time_without_a_command_is_named_with_what_helps():
    late = Lateness(0.001)
    for number in range(300):
        late.period(not 200 <= number < 231)
    assert "up to 31 ms (31 of 300 periods had none)" in late.words()
    assert "real_time_factor" in late.words() and "joint_trajectory" in late.words()


def test_what_is_long_ago_did_not_do_it():
    late = Lateness(0.001)
    for number in range(3000):
        late.period(not 200 <= number < 231)
    assert late.words() == ""


def test_a_simulation_tells_how_far_it_is_every_few_seconds_and_how_it_ended():
    clock = [100.0]
    progress = SimulationProgress(30.0, np.zeros(3), lambda: clock[0])
    told = []
    for k in range(1, 81):
        clock[0] += 0.25
        told.append(progress.line(0.125 * k))
    assert [line for line in told if line] == [
        "simulated 2.6 of 30 s, 0.50 x real time, 55 s left",
        "simulated 5.1 of 30 s, 0.50 x real time, 50 s left",
        "simulated 7.6 of 30 s, 0.50 x real time, 45 s left",
    ]
    assert progress.outcome(np.array([3.0, 4.0, 0.2]), None).endswith("5.00 m from its start")
    assert progress.outcome(np.zeros(3), 1.25) == ", the robot fell at 1.250 s"
    endless = SimulationProgress(0.0, None, lambda: clock[0])
    endless.line(0.0)
    clock[0] += 10.0
    assert endless.line(20.0) == "simulated 20.0 s, 2.00 x real time"
    assert endless.outcome(np.zeros(3), None) == ""
