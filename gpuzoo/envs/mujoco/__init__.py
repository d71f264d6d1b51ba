"""MuJoCo's robots, as in Gymnasium's environments of version 5; exact against MuJoCo."""
