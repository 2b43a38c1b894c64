"""What no plan may ask for and what no measurement can say: beyond it either is refused.

So wide that no robot which works meets them; what a robot bears is in its URDF and in the controller's
parameters. A driver that multiplies wrongly, a stamp of another clock or a spoiled message does.
"""

from __future__ import annotations

SPEED_RAD_S = 500.0
"""Of a joint whose URDF states no velocity limit: twice what fast bare motors turn."""

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
"""How far, m and rad, a base's plan may begin from the motion before and from the measured base."""

BASE_PLAN_SPEED = (10.0, 20.0)
"""Linear, m/s, and angular, rad/s: the fastest legged robots run at half of it."""

BASE_PLAN_ACCELERATION = (500.0, 2000.0)
"""Linear, m/s^2, and angular, rad/s^2: the corrections of a plan are sudden."""
