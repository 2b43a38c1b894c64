"""What went wrong is told in lines of a bounded length."""

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.safety.incidents import MOST_CHARACTERS, Incidents


def test_a_line_ends_somewhere_whoever_chose_its_words():
    lines = []
    incidents = Incidents(lines.append)

    def wordy():
        raise TrajectoryError("unknown joint " + "j" * 1_000_000 + "; known are a, b")

    incidents.guarded("plan", wordy)
    incidents.count("short", "as it is")
    long, short = lines
    assert len(long) < MOST_CHARACTERS + 10
    assert long.startswith("plan: unknown joint jj") and long.endswith("known are a, b")
    assert short == "short: as it is"
