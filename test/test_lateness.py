"""What the simulated robot says of late commands when it falls."""

from contact_id_controller.ros.lateness import Lateness


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
