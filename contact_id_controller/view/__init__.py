"""Runs looked at: bags recorded and replayed, a live view in a browser, tele-operation."""
