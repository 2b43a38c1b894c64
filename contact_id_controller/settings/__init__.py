"""Every node's table of parameters, and one reader of YAML; no ROS."""
