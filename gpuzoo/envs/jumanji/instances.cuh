// The number of the instance that an episode is about, where instances are given.
GZ int given_instance(Env e, int draw) {
  return e.cfg.instance < 0.f ? random_int(e, draw, INSTANCES) : (int)e.cfg.instance;
}
