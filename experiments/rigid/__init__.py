"""Rigid engine: the contact models as a time stepper, on forward problems with bilateral constraints."""
