#include "instances.cuh"

// The size of a drawn instance.
GZ int drawn_size(Env e) { return e.cfg.size < 1.f ? LARGEST : min((int)e.cfg.size, LARGEST); }
