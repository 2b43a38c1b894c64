"""MuJoCo robot and rigid time stepping."""
