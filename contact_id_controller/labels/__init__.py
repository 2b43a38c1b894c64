"""Labels of recorded motions: torques, contact forces, residual and slip of each frame, in chunks."""
