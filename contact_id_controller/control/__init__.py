"""Controller step: feedback, contact sources, limits, memory."""
