"""What is wrong with a robot's file, in words."""
