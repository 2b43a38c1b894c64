"""``contact_id reproduce``: the experiments of the two contact papers, run again and reported."""
