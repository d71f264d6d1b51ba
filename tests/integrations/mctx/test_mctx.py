"""Trees against those of mctx, with the same priors, values, rewards and noise.

The model is a table: a state is a number, and each action leads to another one. Sums in XLA and here are rounded
otherwise, so two actions whose scores are equal to the last bits may be taken in another order; from then on the trees
differ. Fewer than one root in a hundred may.
"""

import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest
import torch

from gpuzoo.core.backend_cpu import CpuBackend
from gpuzoo.search import Settings, Tree, result_of

STATES, ROOTS = 5000, 400


class Table:
    """Random numbers for each state and action."""

    def __init__(self, actions, players, seed):
        rng = np.random.default_rng(seed)
        self.logits = rng.normal(0, 1.5, (STATES, actions)).astype(np.float32)
        self.value = rng.uniform(-1, 1, STATES).astype(np.float32)
        self.next = rng.integers(0, STATES, (STATES, actions))
        self.reward = (rng.uniform(-1, 1, (STATES, actions)) * (rng.random((STATES, actions)) < 0.3)).astype(np.float32)
        kept = {1: [0.9], 2: [-1.0, 1.0], 0: [-1.0, 0.0]}[players]
        self.discount = rng.choice(np.array(kept, np.float32), (STATES, actions))
        self.root = rng.integers(0, STATES, ROOTS)
        self.illegal = rng.random((ROOTS, actions)) < 0.3
        self.illegal[:, 0] = False

    def of_mctx(self):
        root = mctx.RootFnOutput(
            prior_logits=jnp.asarray(self.logits[self.root]),
            value=jnp.asarray(self.value[self.root]),
            embedding=jnp.asarray(self.root),
        )
        logits, value, next_, reward, discount = map(
            jnp.asarray, (self.logits, self.value, self.next, self.reward, self.discount)
        )

        def recurrent(params, key, action, state):
            new = next_[state, action]
            found = mctx.RecurrentFnOutput(
                reward=reward[state, action],
                discount=discount[state, action],
                prior_logits=logits[new],
                value=value[new],
            )
            return found, new

        return root, recurrent

    def search(self, rule, simulations, settings, gumbel=None):
        tree = Tree(ROOTS, simulations, self.logits.shape[1], rule, CpuBackend(1), settings)
        no = torch.zeros(ROOTS, dtype=torch.bool)
        logits = torch.from_numpy(np.where(self.illegal, -np.inf, self.logits[self.root]))
        tree.begin(logits, torch.from_numpy(self.value[self.root]), no)
        if gumbel is not None:
            tree.gumbel.copy_(torch.from_numpy(np.array(gumbel)))
        state = np.zeros(ROOTS * tree.nodes, np.int64)
        state[np.arange(ROOTS) * tree.nodes] = self.root
        for _ in range(simulations):
            tree.select()
            here, action = state[tree.origin.numpy()], tree.chosen.numpy()
            new = self.next[here, action]
            state[tree.row.numpy()] = new
            found = self.logits[new], self.value[new], self.reward[here, action], self.discount[here, action]
            tree.backup(*map(torch.from_numpy, found), no)
        return tree, result_of(tree)


def equal_rows(one, other):
    return (np.asarray(one) == np.asarray(other)).all(axis=1).mean()


@pytest.mark.parametrize("players", [0, 1, 2])
@pytest.mark.parametrize(("actions", "simulations"), [(3, 40), (9, 64), (30, 100), (7, 1)])
@pytest.mark.parametrize("value_range", [None, (-1.0, 1.0)])
def test_puct(actions, simulations, players, value_range):
    table = Table(actions, players, seed=actions)
    root, recurrent = table.of_mctx()
    transform = mctx.qtransform_by_parent_and_siblings
    if value_range:
        transform = functools.partial(mctx.qtransform_by_min_max, min_value=-1.0, max_value=1.0)
    want = mctx.muzero_policy(
        *(None, jax.random.PRNGKey(0), root, recurrent, simulations),
        invalid_actions=jnp.asarray(table.illegal, jnp.float32),
        qtransform=transform,
        dirichlet_fraction=0.0,
    )
    summary = want.search_tree.summary()
    tree, found = table.search("puct", simulations, Settings(value_range=value_range))
    assert equal_rows(found.visits, summary.visit_counts) > 0.99
    same = (found.visits.numpy() == np.asarray(summary.visit_counts)).all(1)
    np.testing.assert_allclose(found.value.numpy()[same], np.asarray(summary.value)[same], atol=2e-5)
    np.testing.assert_allclose(found.q.numpy()[same], np.asarray(summary.qvalues)[same], atol=2e-5)
    np.testing.assert_allclose(found.policy.numpy()[same], np.asarray(want.action_weights)[same], atol=1e-6)
    assert (tree.visits[:, 0] == simulations + 1).all()


@pytest.mark.parametrize("players", [0, 1, 2])
@pytest.mark.parametrize(
    ("actions", "simulations", "considered"),
    [(3, 40, 16), (9, 64, 4), (30, 100, 16), (30, 20, 30), (7, 1, 16), (12, 50, 1)],
)
def test_gumbel(actions, simulations, considered, players):
    table = Table(actions, players, seed=actions)
    root, recurrent = table.of_mctx()
    key = jax.random.PRNGKey(actions)
    want = mctx.gumbel_muzero_policy(
        *(None, key, root, recurrent, simulations),
        invalid_actions=jnp.asarray(table.illegal, jnp.float32),
        max_num_considered_actions=considered,
    )
    gumbel = jax.random.gumbel(jax.random.split(key)[1], (ROOTS, actions), jnp.float32)
    np.testing.assert_array_equal(gumbel, want.search_tree.extra_data.root_gumbel)
    summary = want.search_tree.summary()
    _, found = table.search("gumbel", simulations, Settings(considered=considered), gumbel)
    assert equal_rows(found.visits, summary.visit_counts) > 0.99
    same = (found.visits.numpy() == np.asarray(summary.visit_counts)).all(1)
    assert (found.action.numpy() == np.asarray(want.action))[same].mean() > 0.995
    np.testing.assert_allclose(found.policy.numpy()[same], np.asarray(want.action_weights)[same], atol=2e-4)
    np.testing.assert_allclose(found.value.numpy()[same], np.asarray(summary.value)[same], atol=2e-5)
