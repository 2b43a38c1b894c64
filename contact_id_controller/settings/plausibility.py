"""Bounds of plausible plans and measurements, beyond which they are rejected.

They are so wide that no working robot reaches them; a robot's own limits are in its URDF and in the controller's
parameters. They catch a driver with a wrong factor, a stamp of another clock, or a corrupt message.
"""

from __future__ import annotations

SPEED_RAD_S = 500.0
"""Velocity limit of a joint whose URDF states none: twice that of fast bare motors."""

POSITION_MARGIN = 0.5
"""How far beyond an end of the URDF a joint can be measured, rad or m: ends give, zeros are off."""

SPEED_FACTOR = 5.0
"""How many times the velocity limit of the URDF a joint can be measured at: in falls and impacts."""

BASE = (1e4, 50.0, 100.0)
"""Distance from the odometry's origin, m, speed, m/s, and turning, rad/s, that a base can have."""

PLAN_POSITION_MARGIN = 0.1
"""How far beyond an end of the URDF a joint may be planned, rad or m: the soft stops hold it before."""

PLAN_SPEED_FACTOR = 10.0
"""How many times the velocity limit of the URDF a plan may reach: slower ones are slowed down instead."""

PLAN_ACCELERATION = 1e5
"""Of a joint, rad/s^2: a swing of the walks here takes a hundredth of it."""

BASE_PLAN_JUMP = (0.5, 1.0)
"""Largest distance, m and rad, of a base plan's start from the motion before and from the measured base."""

BASE_PLAN_SPEED = (10.0, 20.0)
"""Linear, m/s, and angular, rad/s: the fastest legged robots run at half of it."""

BASE_PLAN_ACCELERATION = (500.0, 2000.0)
"""Linear, m/s^2, and angular, rad/s^2: the corrections of a plan are sudden."""
