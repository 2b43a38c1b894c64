"""Recorded motions labelled: torques, contact forces, residual and slip of each frame, in chunks."""
