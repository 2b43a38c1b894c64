"""Live and recorded runs: bags recorded and replayed, a live view in a browser, tele-operation."""
