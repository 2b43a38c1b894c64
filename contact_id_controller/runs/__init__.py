"""The harness: one-process and ROS runs, records of runs, batches in parallel."""
