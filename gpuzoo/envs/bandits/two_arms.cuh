// What an agent that learns within an episode has to see: the last reward, the last arm, the time.
GZ void observe_pull(Env e, float now) {
  e.observation[0] = e.last_reward;
  e.observation[1] = (float)(1 - e.last_action);
  e.observation[2] = (float)e.last_action;
  e.observation[3] = now;
}

GZ void pulled(Env e, int arm, float reward) {
  e.last_action = arm;
  e.last_reward = e.reward = reward;
}
