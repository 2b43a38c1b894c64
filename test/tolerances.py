"""How exactly the tests may expect a contact model to solve a problem that is not nasty."""

from contact_id_controller.models import ROWS


def within(pair, tolerance):
    """``tolerance``, or what an iterative model states in its row where that is more."""
    row = ROWS[pair]
    return max(tolerance, 10.0 * row.accuracy) if row.iterative else tolerance
