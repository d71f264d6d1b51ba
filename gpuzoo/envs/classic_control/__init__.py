"""Classic control: a cart, pendulums and hills, which answer as Gymnasium's do."""
