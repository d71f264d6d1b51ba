"""MuJoCo's robots: what Gymnasium's environments of version 5 do, computed for many envs at once; exact against MuJoCo."""
