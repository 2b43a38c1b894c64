"""The papers' experiments: what is run, what is claimed, what came of it."""

AS_PRINTED = {"sliding": "parting"}
"""Options with which coulomb/qp is the first paper's: what slides, parts."""
