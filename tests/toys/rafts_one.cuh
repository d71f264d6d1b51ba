// The rules of rafts.cuh, of one env.

GZ void reset(Env e) {
  once(e, [=] {
    for (int k = 0; k < 2; ++k) e.place[k] = uniform(e, k, -1.f, 1.f);
    for (int a = 0; a < AGENTS; ++a) e.strokes[a] = 0;
    e.water = 0.f;
  });
}

GZ void step(Env e) {
  once(e, [=] {
    for (int a = 0; a < AGENTS; ++a) {
      const int stroke = e.action[a];
      const bool rows = stroke > 0;
      if (rows) e.strokes[a] += stroke;
      e.place[a & 1] += rows ? 0.2f * (float)stroke : uniform(e, a, 0, -0.2f, 0.2f);
      e.reward[a] = (rows ? -0.1f : 0.f) - e.water;
    }
    if (abs(e.place[0]) > abs(e.place[1])) e.water += 0.05f;
    if (e.place[0] > 2.f || e.water > 0.4f)
      for (int a = 0; a < AGENTS; ++a) e.terminate(a);  // not `terminate_all`, so that the program has the general form
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    for (int a = 0; a < AGENTS; ++a) {
      e.observation[a][0] = e.place[a & 1];
      e.observation[a][1] = (float)e.strokes[a];
    }
    e.observation[0][2] = e.water;
  });
}
