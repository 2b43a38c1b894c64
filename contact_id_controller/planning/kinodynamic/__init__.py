"""Plans of momentum and whole-body motion over given footholds."""
