#!/bin/sh
# Prints the requirement for CuPy that fits this machine's NVIDIA driver, or nothing where there is none.
command -v nvidia-smi >/dev/null 2>&1 || exit 0
major=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: \([0-9]*\).*/\1/p' | head -n 1)
case "$major" in
  12) echo "cupy-cuda12x[ctk]" ;;
  1[3-9]) echo "cupy-cuda13x[ctk]" ;;
esac
