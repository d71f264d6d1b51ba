// What agents say to each other. A world has the field speech (speakers, WORDS), and the option continuous_actions.

constexpr int STANDS = 0, MOVES = 5;  // choices of how to move, which come before the words in an agent's action

// How loudly agent a says word k. A Discrete action is one word, a Box has a strength for each.
GZ float loudness(Env e, int a, int k, int moves) {
  if (e.cfg.continuous_actions) return (float)e.action(a, moves + k);
  return (int)e.action(a, 0) / max(moves, 1) == k ? 1.f : 0.f;
}

// `speaker` is the row of agent a in speech.
GZ void speak(Env e, int a, int speaker, int moves) {
  for (int k = 0; k < WORDS; ++k) e.speech(speaker, k) = loudness(e, a, k, moves);
}
GZ void hush(Env e, int speaker) {
  for (int k = 0; k < WORDS; ++k) e.speech(speaker, k) = 0.f;
}
GZ Row hear(Env e, Row out, int speaker) {
  for (int k = 0; k < WORDS; ++k) out[k] = e.speech(speaker, k);
  return out + WORDS;
}
