"""Trainers that stay on the device, and the demonstration. In a clone ``baselines`` is ``gpuzoo.baselines``, too."""

import os

# Before torch is imported: a thread that waits gives its core away. Without this, two threads on two busy cores are ten
# times slower than one.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if __name__ == "baselines":
    from gpuzoo.baselines.clone import share_modules

    share_modules(__name__)
