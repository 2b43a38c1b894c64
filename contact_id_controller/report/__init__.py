"""Plots, animation, pages, one name for each figure of a run."""
