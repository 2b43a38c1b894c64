"""State machine, checks of states and plans, output limits, watchdog, in-process door."""
