"""One file a subcommand of contact_id; no logic of its own."""
