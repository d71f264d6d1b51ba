"""Trainers that stay on the device, one file each, and the demonstration."""

import os

# Before torch is imported: a thread that waits gives its core away. Without this, two threads on two busy cores are ten
# times slower than one.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
