"""Nodes: messages to values and back, no mathematics."""
