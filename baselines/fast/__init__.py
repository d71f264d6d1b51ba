"""What makes the trainers fast: compiled passes over networks, losses and rollouts. Nothing depends on it."""
