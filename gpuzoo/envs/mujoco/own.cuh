// Rules of a model of one's own for which none are given.

GZ void reset(Env e) { rest(e); }

GZ void step(Env e) { move(e); }

GZ void observe(Env e) { see(e); }
