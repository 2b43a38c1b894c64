"""The fault and fuzz campaign."""
