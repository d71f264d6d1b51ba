import os

# Set before JAX looks for devices.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
