GZ void reset(Env e) {
  for (int k = 0; k < 2; ++k) e.place[k] = uniform(e, k, -1.f, 1.f);
  for (int a = 0; a < AGENTS; ++a) e.strokes[a] = 0;
  e.water = 0.f;
}

GZ void step(Env e) {
  for (int a = 0; a < AGENTS; ++a) {
    const PackInt stroke = e.action[a];
    const PackMask rows = stroke > 0;
    e.strokes[a] += select(rows, stroke, 0);
    e.place[a & 1] += select(rows, 0.2f * Pack(stroke), uniform(e, a, 0, -0.2f, 0.2f));
    e.reward[a] = select(rows, -0.1f, 0.f) - e.water;
  }
  const PackMask splash = abs(e.place[0]) > abs(e.place[1]);
  e.water = select(splash, e.water + 0.05f, e.water);
  e.terminated = (e.place[0] > 2.f) | (e.water > 0.4f);
}

GZ void observe(Env e) {
  for (int a = 0; a < AGENTS; ++a) {
    e.observation[a][0] = e.place[a & 1];
    e.observation[a][1] = Pack(e.strokes[a]);
  }
  e.observation[0][2] = e.water;
}
