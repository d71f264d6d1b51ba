// The same angle within [-pi, pi].
GZ float wrap(float angle) { return fma(-TWO_PI, rint(angle / TWO_PI), angle); }
