#include "chess.cuh"
