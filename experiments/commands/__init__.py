"""One file a subcommand of ``python -m experiments``; no logic of its own."""
