#include "battle.cuh"
