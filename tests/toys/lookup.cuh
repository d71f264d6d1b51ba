GZ void reset(Env e) {
  once(e, [=] { e.place = 0; });
}

GZ void step(Env e) {
  once(e, [=] { e.place = e.action; });
}

GZ void observe(Env e) {
  once(e, [=] {
    const int k = e.place;
    e.observation[0] = e.float32_8[k];
    e.observation[1] = e.float32_9[k];
    e.observation[2] = (float)e.int32_8[k];
    e.observation[3] = (float)e.int32_9[k];
    e.observation[4] = (float)e.uint32_8[(u32)k];
    e.observation[5] = (float)e.uint32_9[(u32)k];
    e.observation[6] = (float)e.uint64_8[(i64)k];
    e.observation[7] = (float)e.uint64_9[(i64)k];
    e.observation[8] = (float)e.int8_8[(u8)k];
    e.observation[9] = (float)e.int8_9[(u8)k];
    e.observation[10] = (float)e.uint8_8[k];
    e.observation[11] = (float)e.uint8_9[k];
    for (int j = 0; j < 8; ++j) e.observation[12 + j] = e.float32_8[j];
  });
}
