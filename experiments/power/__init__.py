"""The power that three allocations of torque lose, and what they violate."""
