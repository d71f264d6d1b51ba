// Actions that consist of parts. Their number counts all combinations, with the last part the fastest.

// The number of an action, or -1 of an illegal one.
GZ int number_of(int action) { return action; }
template <class Parts> GZ int number_of(Parts parts) {
  int number = 0;
  for (int k = 0; k < ACTION_SIZE; ++k) {
    const int part = parts[k];
    number = number < 0 || part < 0 ? -1 : number * choices(0, k) + part;
  }
  return number;
}

// Before `allow` is called for all numbers.
GZ void allow_nothing(Env e) {
  if (Config::action_form == ACTION_FORM_PARTS)
    for (int k = 0; k < MASK_SIZE; ++k) e.action_mask[k] = 0;
}

// Says whether an action is legal. A part of it is, if it belongs to any legal action.
GZ void allow(Env e, int number, bool legal) {
  if (Config::action_form == ACTION_FORM_FLAT) {
    e.action_mask[number] = (i8)legal;
  } else if (legal) {
    int rest = number;
    for (int k = ACTION_SIZE - 1; k >= 0; --k) {
      e.action_mask[mask_offset(0, k) + rest % choices(0, k)] = 1;
      rest /= choices(0, k);
    }
  }
}
