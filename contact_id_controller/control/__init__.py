"""The step: feedback, contact sources, limits, memory."""
