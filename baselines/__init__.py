"""Trainers that stay on the device, one file each, and the demonstration."""
