"""The papers' experiments: what is run, what is claimed, what came of it."""
