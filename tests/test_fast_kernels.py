"""The trainers' kernels: the right distributions, the same bits everywhere, and nothing outside of what is legal.

All randomness is seeded, so a test passes always or never. A chi-square or Kolmogorov-Smirnov statistic is held against
the value that chance exceeds once in a million times.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import re
import sys
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from gpuzoo.core import nvrtc
from gpuzoo.core.backend import make_backend
from gpuzoo.core.backend_cuda import _CudaUnit

torch = pytest.importorskip("torch")

from baselines.fast import kernels  # noqa: E402

pytestmark = pytest.mark.rotates  # about these modules of the trainers

NVECS = [(2,), (7,), (3, 5, 2), (4, 1, 9, 2, 6), (600,)]
ONE_IN_A_MILLION = 4.75  # normal deviations, one-sided


def seeds_of(members, first=0):
    return torch.arange(first, first + members, dtype=torch.int64) * 7919 + 11


def counter_at(value=0):
    return torch.tensor([value], dtype=torch.int64)


def categorical(nvec, logits, mask=None, seeds=None, counter=0, offset=0, first_row=0, greedy=False):
    """Actions and log-probabilities of one draw."""
    members, rows = logits.shape[:2]
    device = logits.device
    sampler = kernels.CategoricalSampler(nvec, mask is not None, device)
    action = torch.full((members, rows, len(nvec)), -7, dtype=torch.int32, device=device)
    log_prob = torch.full((members, rows), -7.0, device=device)
    seeds = (seeds_of(members) if seeds is None else seeds).to(device)
    bound = sampler.bind(seeds, counter_at(counter).to(device), logits, mask, action, log_prob, first_row, greedy)
    bound(offset)
    return action, log_prob


def normal(mean, log_std, seeds=None, counter=0, offset=0, first_row=0, greedy=False):
    """Actions and log-densities of one draw."""
    members, rows, size = mean.shape
    device = mean.device
    action, log_prob = torch.full_like(mean, -7.0), torch.full((members, rows), -7.0, device=device)
    seeds = (seeds_of(members) if seeds is None else seeds).to(device)
    sampler = kernels.NormalSampler(size, device)
    sampler.bind(seeds, counter_at(counter).to(device), mean, log_std, action, log_prob, first_row, greedy)(offset)
    return action, log_prob


def shuffled(counts, width, seeds=None, counter=0, offset=0, device="cpu"):
    out = torch.full((len(counts), width), -7, dtype=torch.int64, device=device)
    seeds = (seeds_of(len(counts)) if seeds is None else seeds).to(device)
    counts = torch.as_tensor(counts, dtype=torch.int64, device=device)
    kernels.bind_shuffle(seeds, counter_at(counter).to(device), counts, out)(offset)
    return out


def random_logits(nvec, members, rows, seed=0, scale=3.0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(members, rows, len(nvec) * max(nvec), generator=generator) * scale


def random_mask(nvec, members, rows, seed=0):
    """Masks with at least one legal choice in each component."""
    rng = np.random.default_rng(seed)
    mask = rng.random((members, rows, sum(nvec))) < 0.4
    for start, n in zip(np.cumsum((0, *nvec[:-1])), nvec, strict=True):
        choice = rng.integers(0, n, (members, rows, 1))
        np.put_along_axis(mask[..., start : start + n], choice, True, axis=-1)
    return torch.from_numpy(mask.astype(np.int8))


def components(nvec, logits, mask=None):
    """For each component, its logits in float64 with -inf where a choice is illegal."""
    width, start = max(nvec), 0
    for p, n in enumerate(nvec):
        x = logits[..., p * width : p * width + n].double()
        yield x if mask is None else torch.where(mask[..., start : start + n] != 0, x, -math.inf)
        start += n


def chi_square(observed, expected):
    """Raises unless the counts agree with what was expected; bins that expect less than 10 are merged."""
    observed, expected = (np.ravel(np.asarray(x, dtype=np.float64)) for x in (observed, expected))
    assert not observed[expected == 0].any()
    small = expected < 10
    observed = np.append(observed[~small], observed[small].sum())
    expected = np.append(expected[~small], expected[small].sum())
    if expected[-1] < 10:
        observed[-2:], expected[-2:] = observed[-2:].sum(), expected[-2:].sum()
        observed, expected = observed[:-1], expected[:-1]
    freedom = len(expected) - 1
    statistic = ((observed - expected) ** 2 / expected).sum()
    # Wilson and Hilferty's normal approximation of the quantile, 1931.
    spread = 2 / (9 * freedom)
    limit = freedom * (1 - spread + ONE_IN_A_MILLION * math.sqrt(spread)) ** 3
    assert statistic < limit, f"chi-square {statistic:.1f} with {freedom} degrees of freedom, limit {limit:.1f}"


def philox(words, key):
    """Philox4x32-10 in NumPy: `words` are four arrays of uint64 below 2**32."""
    x, y, z, w = (np.asarray(v, np.uint64) for v in words)
    low = np.uint64(0xFFFFFFFF)
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        a, b = x * np.uint64(0xD2511F53), z * np.uint64(0xCD9E8D57)
        x, y, z, w = (
            (b >> np.uint64(32)) ^ y ^ np.uint64(k0),
            b & low,
            (a >> np.uint64(32)) ^ w ^ np.uint64(k1),
            a & low,
        )
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return np.stack([x, y, z, w])


@pytest.fixture
def simt(monkeypatch):
    """The thread form of the kernels, on the host."""
    backend = make_backend("simt")

    def thread_form(code, device, *names):
        return backend.compile_unit(code, names[0], names)

    def use():
        monkeypatch.setattr(kernels, "compile_unit", thread_form)

    return use


def same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a.cpu(), b.cpu())


# ---- categorical: what is drawn ----


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("nvec", NVECS)
def test_log_prob_is_that_of_the_action(nvec, masked):
    logits = random_logits(nvec, 2, 500)
    mask = random_mask(nvec, 2, 500) if masked else None
    action, log_prob = categorical(nvec, logits, mask)
    expected = torch.zeros(2, 500, dtype=torch.float64)
    for p, x in enumerate(components(nvec, logits, mask)):
        expected += torch.distributions.Categorical(logits=x).log_prob(action[..., p])
    # exp, log and the subtractions are right to some 2**-23 of logits up to 16; a sum of 600 to 600 roundings at most.
    torch.testing.assert_close(log_prob.double(), expected, rtol=0, atol=len(nvec) * (max(nvec) + 64) * 2**-24)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("nvec", [(2,), (7,), (3, 5, 2), (4, 1, 9, 2, 6)])
def test_frequencies(nvec, masked):
    """Every joint action of one distribution, over 200,000 rows."""
    rows = 200_000
    logits = random_logits(nvec, 1, 1, scale=1.0).expand(1, rows, -1).contiguous()
    mask = random_mask(nvec, 1, 1, seed=3).expand(1, rows, -1).contiguous() if masked else None
    action, _ = categorical(nvec, logits, mask)
    observed = np.zeros(nvec)
    np.add.at(observed, tuple(action[0].T.numpy()), 1)
    expected = np.ones(())
    for x in components(nvec, logits[:, :1], None if mask is None else mask[:, :1]):
        expected = np.multiply.outer(expected, torch.softmax(x[0, 0], -1).numpy())
    chi_square(observed, rows * expected)


@pytest.mark.parametrize("x", [
    [0.0, -1e8, 0.0, -1e8], [1e30, 1e30, -1e30, 1e30], [0.0] * 5, [-1e8, -1e8], [3e38, 3e38, -3e38],
    [-math.inf, 1.0, 2.0, -math.inf], [-1e-30, 0.0, 1e-30], [88.0, 89.0, 90.0], [0.0, -5.0, -9.0, -10.0], [5.0],
])  # fmt: skip
def test_frequencies_of_unusual_logits(x):
    rows = 100_000
    logits = torch.tensor(x).expand(1, rows, -1).contiguous()
    action, log_prob = categorical((len(x),), logits)
    expected = torch.log_softmax(torch.tensor(x, dtype=torch.float64), -1)
    observed = np.bincount(action.ravel(), minlength=len(x))
    if np.count_nonzero(expected.exp()) > 1:
        chi_square(observed, rows * expected.exp().numpy())
    assert not observed[expected.exp().numpy() == 0].any()
    # one rounding of the difference of two logits, and those of exp and log
    torch.testing.assert_close(log_prob[0].double(), expected[action[0, :, 0]], rtol=2**-22, atol=2**-22)


def test_successive_draws_and_rows_are_independent():
    """Pairs of actions of neighbouring rows, of successive counters and of two components."""
    rows = 100_000
    logits = torch.zeros(1, rows, 10)
    now, _ = categorical((5, 5), logits)
    later, _ = categorical((5, 5), logits, offset=1)
    other, _ = categorical((5, 5), logits, seeds=seeds_of(1, 1))
    x = now[0, :, 0].numpy()
    for y in (now[0, :, 1].numpy(), later[0, :, 0].numpy(), other[0, :, 0].numpy(), np.roll(x, 1)):
        pairs = np.zeros((5, 5))
        np.add.at(pairs, (x, y), 1)
        chi_square(pairs, np.full(25, rows / 25))


def test_masks_are_never_violated():
    nvec, members, rows = (3, 9), 4, 250_000
    logits, mask = random_logits(nvec, members, rows, scale=30.0), random_mask(nvec, members, rows)
    action, _ = categorical(nvec, logits, mask)
    assert mask[..., :3].gather(-1, action[..., :1]).all()
    assert mask[..., 3:].gather(-1, action[..., 1:]).all()


def test_numbers_are_philox_of_seed_counter_row_and_component():
    """The inverse of the cumulative distribution at a number that NumPy's Philox gives as well."""
    nvec, rows, first, counter, offset = (4, 4, 4, 4, 4, 4), 1000, 2**32 - 5000, 2**32 - 3, 5
    seeds = torch.tensor([-3, 2**40 + 9])
    logits = random_logits(nvec, 2, rows)
    action, _ = categorical(nvec, logits, None, seeds, counter, offset, first)
    row = np.arange(first, first + rows)
    now = counter + offset
    for m, seed in enumerate(seeds.tolist()):
        for p, x in enumerate(components(nvec, logits)):
            block = np.full(rows, p // 4)
            words = [block, np.full(rows, 0xC0000000 + (now >> 32)), np.full(rows, now % 2**32), row]
            u = (philox(words, seed % 2**64)[p % 4] >> np.uint64(1)) / 2**31
            edges = torch.softmax(x[m], -1).cumsum(-1).numpy()
            found = (edges <= u[:, None]).sum(-1)
            clear = np.abs(edges - u[:, None]).min(-1) > 1e-6  # else float32 may decide differently
            assert clear.mean() > 0.99
            assert np.array_equal(found[clear], action[m, clear, p].numpy())


@pytest.mark.parametrize("legal", [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]])
def test_a_number_that_rounds_to_one(legal):
    """With seed 0 and this counter the first word is 0xffffff91, whose upper 31 bits round to 2**31."""
    counter = 3605154
    word = philox([[0], [0xC0000000], [counter], [0]], 0)[0, 0]
    assert np.float32(word >> np.uint64(1)) == 2**31
    mask = torch.tensor(legal, dtype=torch.int8).view(1, 1, 3)
    action, log_prob = categorical((3,), torch.zeros(1, 1, 3), mask, torch.zeros(1, dtype=torch.int64), counter)
    last = max(k for k in range(3) if legal[k])
    assert action.item() == last
    assert log_prob.item() == pytest.approx(-math.log(sum(legal)), abs=1e-7)  # one ulp of log


def test_a_row_without_a_legal_choice():
    mask = torch.tensor([[[0, 0, 0, 1, 1], [1, 1, 1, 0, 0]]], dtype=torch.int8)
    action, log_prob = categorical((3, 2), torch.zeros(1, 2, 6), mask)
    assert action[0, 0, 0] == 0
    assert action[0, 1, 1] == 0
    torch.testing.assert_close(log_prob, -torch.tensor([[2.0, 3.0]]).log())


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_no_numbers_give_nan_and_a_legal_action(bad, greedy):
    logits = torch.zeros(1, 64, 4)
    for k in range(4):
        logits[0, k::4, k] = bad
    mask = torch.tensor([0, 1, 1, 1], dtype=torch.int8).expand(1, 64, 4).contiguous()
    action, log_prob = categorical((4,), logits, mask, greedy=greedy)
    assert ((action >= 1) & (action < 4)).all()
    assert log_prob.isnan()[0].tolist() == [False, True, True, True] * 16
    action, log_prob = categorical((4,), torch.full((1, 64, 4), math.nan), greedy=greedy)
    assert ((action >= 0) & (action < 4)).all()
    assert log_prob.isnan().all()


def test_legal_logits_of_minus_infinity():
    logits = torch.full((1, 3, 4), -math.inf)
    mask = torch.tensor([0, 0, 1, 1], dtype=torch.int8).expand(1, 3, 4).contiguous()
    action, log_prob = categorical((4,), logits, mask)
    assert action.ravel().tolist() == [2, 2, 2]
    assert log_prob.isnan().all()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("nvec", NVECS)
def test_greedy(nvec, masked):
    logits = random_logits(nvec, 2, 300).round()  # with ties
    mask = random_mask(nvec, 2, 300) if masked else None
    action, log_prob = categorical(nvec, logits, mask, greedy=True)
    expected = torch.zeros(2, 300, dtype=torch.float64)
    for p, x in enumerate(components(nvec, logits, mask)):
        first = np.argmax(x.numpy(), axis=-1)  # the first of equal ones
        assert np.array_equal(action[..., p], first)
        expected += torch.log_softmax(x, -1).max(-1).values
    # as in test_log_prob_is_that_of_the_action
    torch.testing.assert_close(log_prob.double(), expected, rtol=0, atol=len(nvec) * (max(nvec) + 64) * 2**-24)


# ---- normal ----


def test_normal_distribution():
    rows, size = 200_000, 3
    mean = torch.tensor([1.0, -2.0, 0.0]).expand(2, rows, size).contiguous()
    log_std = torch.tensor([[0.0, -1.0, 0.5], [0.3, 0.1, -0.2]])
    action, _ = normal(mean, log_std)
    z = ((action - mean) / log_std.exp().unsqueeze(1)).double()
    deviation = 1 / math.sqrt(rows)
    assert (z.mean(1).abs() < 5 * deviation).all()
    assert ((z.std(1) - 1).abs() < 5 * deviation / math.sqrt(2)).all()
    levels = (torch.arange(rows, dtype=torch.float64) + 0.5) / rows
    for m, k in itertools.product(range(2), range(size)):
        cdf = 0.5 * torch.erfc(-z[m, :, k].sort().values / math.sqrt(2))
        distance = (cdf - levels).abs().max() + 0.5 / rows
        assert distance * math.sqrt(rows) < 2.7  # 2 exp(-2 * 2.7**2) = 1e-6
    flat = z.transpose(0, 1).reshape(rows, -1)
    correlation = torch.corrcoef(flat.T) - torch.eye(2 * size, dtype=torch.float64)
    assert (correlation.abs() < 5 * deviation).all()
    assert z.abs().max() > 4.5  # 2.4 million draws: the tails are there


@pytest.mark.parametrize("size", [1, 2, 5, 17])
def test_log_prob_of_a_normal_action(size):
    mean = random_logits((size,), 3, 400)
    log_std = torch.linspace(-2, 1, 3 * size).view(3, size)
    action, log_prob = normal(mean, log_std)
    scale = log_std.double().exp().unsqueeze(1)
    expected = torch.distributions.Normal(mean.double(), scale).log_prob(action.double()).sum(-1)
    # Roundings of each term, whose size is up to 15 (5 deviations), and of the sum.
    torch.testing.assert_close(log_prob.double(), expected, rtol=0, atol=size * 64 * 2**-23)


@pytest.mark.parametrize("members", [1, 3])
def test_single_components_do_not_depend_on_the_batch(members):
    """Neighbouring rows share a pair of numbers, and tiles of them go another way than what is left over."""
    log_std = torch.linspace(-1, 1, members).view(-1, 1)
    mean = random_logits((1,), members, 203)
    action, log_prob = normal(mean, log_std)
    for first, count in ((0, 1), (1, 1), (1, 64), (2, 64), (33, 170)):
        some = mean[:, first : first + count].contiguous()
        parts = action[:, first : first + count], log_prob[:, first : first + count]
        same(normal(some, log_std, first_row=first), parts)
    wide, sampler = torch.zeros(members, 203, 2), kernels.NormalSampler(1)
    sampler.bind(seeds_of(members), counter_at(), mean, log_std, wide[..., 1:], log_prob.clone())()
    assert torch.equal(wide[..., 1:], action)
    z = ((action - mean) / log_std.exp().unsqueeze(1))[:, :202, 0].double()
    assert (z[:, ::2] * z[:, 1::2]).mean(1).abs().max() < 4.9 * 101**-0.5  # neighbours are independent


def test_greedy_normal_is_the_mean():
    mean = random_logits((4,), 2, 50)
    action, log_prob = normal(mean, torch.zeros(2, 4), greedy=True)
    assert torch.equal(action, mean)
    # four terms and their sum, each rounded
    torch.testing.assert_close(log_prob, torch.full((2, 50), -2 * math.log(2 * math.pi)), rtol=0, atol=2**-20)


def test_log_std_may_be_a_view_of_other_parameters():
    mean, flat = torch.zeros(2, 40, 3), torch.randn(2, 100, generator=torch.Generator().manual_seed(0))
    same(normal(mean, flat[:, 50:53]), normal(mean, flat[:, 50:53].contiguous()))


def test_nan_in_the_mean_is_seen_in_the_density():
    mean = torch.zeros(1, 3, 2)
    mean[0, 1, 1] = math.nan
    action, log_prob = normal(mean, torch.zeros(1, 2))
    assert action.isnan().any(-1).tolist() == log_prob.isnan().tolist() == [[False, True, False]]


# ---- the same bits ----

DRAWS = {
    "categorical": lambda x, **options: categorical((3, 5, 2), x[..., :15].contiguous(), **options),
    "normal": lambda x, **options: normal(x, torch.linspace(-1, 1, x.shape[0] * 17).view(-1, 17), **options),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_a_row_depends_on_its_seed_counter_and_number_alone(draw):
    x = random_logits((17,), 3, 100)
    seeds = seeds_of(3)
    whole = draw(x, seeds=seeds, counter=40)
    same(whole, draw(x, seeds=seeds, counter=30, offset=10))
    part = draw(x[:, 37:60].contiguous(), seeds=seeds, counter=40, first_row=37)
    same(part, [y[:, 37:60] for y in whole])
    for changed in (draw(x, seeds=seeds, counter=41), draw(x, seeds=seeds + 1, counter=40),
                    draw(x, seeds=seeds, counter=40, first_row=1)):  # fmt: skip
        assert not torch.equal(changed[0], whole[0])


def test_a_member_alone_draws_what_it_draws_among_others():
    x, seeds = random_logits((6,), 5, 70), seeds_of(5)
    log_std = torch.linspace(-1, 1, 30).view(5, 6)
    discrete, continuous = categorical((6,), x, seeds=seeds), normal(x, log_std, seeds=seeds)
    orders = shuffled([70, 3, 66, 0, 70], 70, seeds)
    for m in range(5):
        one = slice(m, m + 1)
        same([y[one] for y in discrete], categorical((6,), x[one], seeds=seeds[one]))
        same([y[one] for y in continuous], normal(x[one], log_std[one], seeds=seeds[one]))
        count = [70, 3, 66, 0, 70][m]
        assert torch.equal(orders[m, :count], shuffled([count], max(1, count), seeds[one])[0, :count])


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_and_strides_change_nothing(threads):
    """40,000 rows are several tiles; the outputs lie in larger arrays, which keep all else."""
    members, rows, nvec = 4, 10_000, (3, 2)
    logits = random_logits(nvec, members, rows)
    expected = categorical(nvec, logits)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        actions = torch.full((members, 2, rows, 4), -7, dtype=torch.int32)
        log_probs = torch.full((members, 2, rows), -7.0)
        sampler = kernels.CategoricalSampler(nvec)
        sampler.bind(seeds_of(members), counter_at(), logits, None, actions[:, 1, :, 1:3], log_probs[:, 1])(0)
    finally:
        torch.set_num_threads(before)
    same([actions[:, 1, :, 1:3], log_probs[:, 1]], expected)
    assert (actions == -7).sum() == actions.numel() - expected[0].numel()
    assert (log_probs == -7).sum() == log_probs.numel() - expected[1].numel()


def everything(device):
    """A result of every kernel."""
    out = []
    for nvec, masked in ((2,), False), ((3, 5, 2), True), ((600,), True):
        logits = random_logits(nvec, 3, 50)
        logits[0, 0] = math.nan
        mask = random_mask(nvec, 3, 50).to(device) if masked else None
        for greedy in (False, True):
            out += categorical(nvec, logits.to(device), mask, first_row=9, greedy=greedy)
    for size in (1, 7):
        mean = random_logits((size,), 3, 50).to(device)
        out += normal(mean, torch.linspace(-1, 1, 3 * size).view(3, size).to(device), offset=3)
    out.append(shuffled([1, 2, 50, 130, 200, 0, 999, -5], 200, device=device))
    x, decay = random_logits((37,), 21, 3).to(device), random_logits((37,), 21, 3, seed=1, scale=0.5).to(device)
    out += [kernels.scan(x, decay), kernels.scan(x[:1], decay[:1])]
    flags = torch.rand(3, 20, 3, 37, generator=torch.Generator().manual_seed(2)).to(device) < 0.3
    gamma = torch.linspace(0, 1, 111, device=device).view(3, 37)
    for waits, known in ((False, True), (True, True), (True, False)):
        gain, valid = kernels.gae(decay[:20].contiguous(), x, torch.cat([flags[0], flags[1, :1]]), flags[1], flags[2],
                                  decay[1:] if known else None, gamma, 0.9, waits)  # fmt: skip
        out += [gain, valid.int()]
    weights = [random_logits((90,), 3, 1, seed=k)[:, 0].to(device) for k in range(4)]
    weights[3].abs_()  # the mean of squares
    factor, rate, count = (
        torch.tensor(x, device=device) for x in ([[0.5], [1.0], [0.1]], [[1e-3]] * 3, [1.0, 7.0, 900.0])
    )
    kernels.bind_adam(*weights, factor, rate, count)()
    out += weights
    return [x.nan_to_num(1e30).cpu() for x in out]  # bits of NaN are nobody's promise


@pytest.mark.rotates
def test_the_thread_form_gives_the_same_bits(simt):
    expected = everything("cpu")
    simt()
    same(everything("cpu"), expected)


def test_a_call_without_items_launches_nothing_on_a_gpu():
    """The driver refuses a grid without blocks, such as that of `scan` of no columns."""
    launches = []

    def launch(*arguments, **options):
        launches.append(arguments)

    module = SimpleNamespace(get_function=lambda name: launch)
    backend = SimpleNamespace(
        xp=SimpleNamespace(RawModule=lambda path: module), ordered=contextlib.nullcontext, launch=launch
    )
    unit = _CudaUnit(backend, "no file", ["scan"])
    unit.bind("scan", [0, 1, 0, 0, 0, 0])(0)
    assert not launches
    unit.bind("scan", [1, 1, 0, 0, 0, 0])(0)
    assert len(launches) == 1


# ---- shuffle ----


def test_every_row_is_a_permutation():
    counts = list(range(301))
    out = shuffled(counts, 300).numpy()
    for count, row in zip(counts, out, strict=True):
        assert np.array_equal(np.sort(row[:count]), np.arange(count))
        assert (row[count:] == -1).all()


@pytest.mark.parametrize("count", [1 << 16, (1 << 16) + 1, 99_991, (1 << 20) - 1])
def test_large_permutations(count):
    row = shuffled([count], count)[0].numpy()
    assert np.array_equal(np.bincount(row, minlength=count), np.ones(count))
    assert abs(np.corrcoef(row, np.arange(count))[0, 1]) < 5 / math.sqrt(count)
    assert (row == np.arange(count)).sum() < 15  # a Poisson number with mean 1


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_all_orders_are_equally_likely(count):
    out = shuffled([count] * 100_000, count).numpy()
    numbers = (out * count ** np.arange(count)).sum(-1)
    _, observed = np.unique(numbers, return_counts=True)
    assert len(observed) == math.factorial(count)
    chi_square(observed, np.full(len(observed), 100_000 / len(observed)))


@pytest.mark.parametrize("count", [7, 16, 31, 64, 100])
def test_uniformity(count):
    trials = 200_000
    out = shuffled([count] * trials, count).numpy()
    chi_square(np.bincount(np.argmin(out, 1), minlength=count), np.full(count, trials / count))
    for a, b in ((0, 1), (count // 2, count // 2 + 1), (0, count - 1)):
        pairs = np.bincount(out[:, a] * count + out[:, b], minlength=count**2).reshape(count, count)
        assert not np.diag(pairs).any()
        others = pairs[~np.eye(count, dtype=bool)]
        chi_square(others, np.full(len(others), trials / len(others)))
    gaps = np.bincount((out[:, 1] - out[:, 0]) % count, minlength=count)[1:]
    chi_square(gaps, np.full(count - 1, trials / (count - 1)))
    fixed = (out == np.arange(count)).sum(1)
    assert abs(fixed.mean() - 1) < 5 / math.sqrt(trials)  # mean and variance of the number of fixed points are 1
    assert abs(fixed.var() - 1) < 5 * math.sqrt(3 / trials)  # its fourth central moment is 4
    followers = (np.diff(out, axis=1) == 1).sum(1)
    assert abs(followers.mean() - (count - 1) / count) < 5 / math.sqrt(trials)


def test_each_epoch_and_each_seed_has_its_own_order():
    rows = [shuffled([50], 50, counter=c, offset=o)[0] for c, o in ((0, 0), (0, 1), (5, 0), (2**33, 0))]
    rows.append(shuffled([50], 50, seeds_of(1, 1))[0])
    assert len({tuple(row.tolist()) for row in rows}) == len(rows)
    assert torch.equal(shuffled([50], 50, counter=3, offset=2)[0], rows[2])


def test_successive_epochs_are_independent():
    count, trials = 20, 50_000
    now, later = (shuffled([count] * trials, count, offset=k).numpy() for k in range(2))
    pairs = np.bincount(now[:, 0] * count + later[:, 0], minlength=count**2)
    chi_square(pairs, np.full(count**2, trials / count**2))


# ---- scan ----


@pytest.mark.parametrize("shape", [(1,), (9,), (1, 5), (7, 3), (130, 2, 33), (3, 20_000), (0, 4), (4, 0)])
def test_scan(shape):
    generator = torch.Generator().manual_seed(1)
    x, decay = torch.randn(shape, generator=generator), torch.rand(shape, generator=generator)
    expected = x.clone()
    for t in range(1, len(x)):
        expected[t] = x[t] + decay[t] * expected[t - 1]
    assert torch.equal(kernels.scan(x, decay), expected)


def test_scan_does_not_use_the_decay_of_the_first_row():
    x, decay = torch.tensor([[-0.0], [-0.0]]), torch.tensor([[math.nan], [0.0]])
    assert torch.signbit(kernels.scan(x, decay)[0])


# ---- calls ----


def test_a_prepared_call_keeps_its_tensors():
    logits = torch.zeros(1, 4, 2)
    kept = weakref.ref(logits)
    action, log_prob = torch.zeros(1, 4, 1, dtype=torch.int32), torch.zeros(1, 4)
    sampler = kernels.CategoricalSampler((2,))
    bound = sampler.bind(seeds_of(1), counter_at(), logits, None, action, log_prob)
    del logits
    gc.collect()
    assert kept() is not None
    bound()
    torch.testing.assert_close(log_prob, torch.full((1, 4), -math.log(2)))
    del bound
    gc.collect()
    assert kept() is None


def test_the_counter_is_read_at_each_call():
    logits, counter = torch.zeros(1, 400, 8), counter_at()
    action, log_prob = torch.zeros(1, 400, 1, dtype=torch.int32), torch.zeros(1, 400)
    bound = kernels.CategoricalSampler((8,)).bind(seeds_of(1), counter, logits, None, action, log_prob)
    bound(6)
    expected = action.clone()
    counter += 4
    bound(2)
    assert torch.equal(action, expected)


def arguments():
    nvec, members, rows = (2, 3), 2, 8
    return {
        "seeds": seeds_of(members), "counter": counter_at(), "logits": torch.zeros(members, rows, 6),
        "mask": torch.ones(members, rows, sum(nvec), dtype=torch.int8),
        "action": torch.zeros(members, rows, 2, dtype=torch.int32), "log_prob": torch.zeros(members, rows),
    }  # fmt: skip


@pytest.mark.parametrize(("change", "error", "message"), [
    ({"logits": torch.zeros(2, 8, 6).double()}, TypeError, r"logits must be torch.float32, not torch.float64"),
    ({"logits": torch.zeros(16, 6)}, ValueError, r"logits must have the shape \(members, rows, 6\), not \(16, 6\)"),
    ({"logits": torch.zeros(2, 8, 5)}, ValueError, r"logits must have the shape \(2, 8, 6\), not \(2, 8, 5\)"),
    ({"logits": torch.zeros(2, 6, 8).mT}, ValueError, r"logits must be contiguous: its strides"),
    ({"logits": np.zeros((2, 8, 6))}, TypeError, r"logits must be a torch tensor, not ndarray"),
    ({"logits": torch.zeros(2, 8, 6, device="meta")}, ValueError, r"logits must be on cpu like the kernel, not on m"),
    ({"mask": None}, ValueError, r"made with masked=True: mask must not be None"),
    ({"mask": torch.ones(2, 8, 6, dtype=torch.int8)}, ValueError, r"mask must have the shape \(2, 8, 5\)"),
    ({"mask": torch.ones(2, 8, 5, dtype=torch.bool)}, TypeError, r"mask must be torch.int8, not torch.bool"),
    ({"action": torch.zeros(2, 8, 2, dtype=torch.int64)}, TypeError, r"action must be torch.int32"),
    ({"action": torch.zeros(2, 8, 4, dtype=torch.int32)[..., ::2]}, ValueError, "action must be contiguous in its"),
    ({"log_prob": torch.zeros(2, 8, 1)}, ValueError, r"log_prob must have the shape \(2, 8\)"),
    ({"seeds": seeds_of(3)}, ValueError, r"seeds must have the shape \(2,\)"),
    ({"counter": torch.tensor(0)}, ValueError, r"counter must have the shape \(1,\)"),
    ({"first_row": -1}, ValueError, r"first_row must be from 0 to 2\*\*32 - 8"),
    ({"first_row": 2**32 - 7}, ValueError, r"first_row must be from 0 to 2\*\*32 - 8"),
])  # fmt: skip
def test_refusals_of_bind(change, error, message):
    with pytest.raises(error, match=message):
        kernels.CategoricalSampler((2, 3), masked=True).bind(**arguments() | change)


def test_other_refusals():
    with pytest.raises(ValueError, match="masked=False: mask must be None"):
        kernels.CategoricalSampler((2, 3)).bind(**arguments())
    with pytest.raises(ValueError, match=r"nvec must give each component at least one choice, not \(\)"):
        kernels.CategoricalSampler(())
    with pytest.raises(ValueError, match="at least one choice"):
        kernels.CategoricalSampler((3, 0))
    with pytest.raises(ValueError, match="size must be at least 1, not 0"):
        kernels.NormalSampler(0)
    for device in ("meta", "gpu"):
        with pytest.raises(ValueError, match=f"device must be 'cpu', 'cuda' or 'cuda:<index>', not '{device}'"):
            kernels.NormalSampler(1, device)
    sampler, x, out = kernels.NormalSampler(3), torch.zeros(1, 2, 3), torch.zeros(1, 2)
    with pytest.raises(ValueError, match=r"log_std must have the shape \(1, 3\), not \(3,\)"):
        sampler.bind(seeds_of(1), counter_at(), x, torch.zeros(3), x, out)
    with pytest.raises(TypeError, match=r"action must be torch.float32"):
        sampler.bind(seeds_of(1), counter_at(), x, torch.zeros(1, 3), x.long(), out)
    with pytest.raises(ValueError, match=r"counts must have the shape \(2,\)"):
        kernels.bind_shuffle(seeds_of(2), counter_at(), seeds_of(3), torch.zeros(2, 5, dtype=torch.int64))
    with pytest.raises(TypeError, match=r"out must be torch.int64"):
        kernels.bind_shuffle(seeds_of(2), counter_at(), seeds_of(2), torch.zeros(2, 5))
    with pytest.raises(ValueError, match=r"decay must have the shape \(2, 3\), not \(3,\)"):
        kernels.scan(torch.zeros(2, 3), torch.zeros(3))
    with pytest.raises(ValueError, match=r"x must be contiguous"):
        kernels.scan(torch.zeros(3, 2).mT, torch.zeros(2, 3))
    with pytest.raises(TypeError, match=r"x must be torch.float32"):
        kernels.scan(torch.zeros(2, 3).double(), torch.zeros(2, 3))
    with pytest.raises(TypeError, match=r"x must be a torch tensor with at least one axis"):
        kernels.scan(torch.tensor(1.0), torch.tensor(1.0))
    good = {"rewards": torch.zeros(4, 2), "values": torch.zeros(5, 2), "acting": torch.zeros(5, 2).bool(),
            "terminated": torch.zeros(4, 2).bool(), "truncated": torch.zeros(4, 2).bool(), "final_values": None,
            "gamma": torch.zeros(2), "gae_lambda": 0.9, "waits": False}  # fmt: skip
    kernels.gae(**good)
    for name, wrong, error, message in (
        ("values", torch.zeros(4, 2), ValueError, r"values must have the shape \(5, 2\)"),
        ("acting", torch.zeros(5, 2), TypeError, "acting must be torch.bool"),
        ("final_values", torch.zeros(4, 3), ValueError, r"final_values must have the shape \(4, 2\)"),
    ):
        with pytest.raises(error, match=message):
            kernels.gae(**good | {name: wrong})


# ---- CUDA ----

UNITS = {f"categorical{nvec}{'-masked' * masked}": kernels.categorical_code(nvec, masked)
         for nvec in NVECS for masked in (False, True)}  # fmt: skip
UNITS |= {f"normal({size})": kernels.normal_code(size) for size in (1, 6, 17)} | {"tools": kernels.tools_code()}


@pytest.mark.rotates
@pytest.mark.skipif(sys.platform != "linux", reason="NVIDIA has NVRTC for Linux's CPUs only")
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("name", UNITS)
def test_nvrtc_compiles_it_without_spills(name, arch):
    cubin, log = nvrtc.compile_cubin(UNITS[name], name, arch, (*nvrtc.OPTIONS, "--ptxas-options=-v"))
    assert cubin[:4] == b"\x7fELF"
    seen = dict(re.findall(r"Function properties for gz_(\w+)\nptxas[ .]*([^\n]*)", log))
    assert seen.keys() == ({"shuffle", "scan", "gae", "adam"} if name == "tools" else {re.match(r"\w+", name)[0]})
    assert set(seen.values()) == {"0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"}


@pytest.mark.gpu
def test_cuda_gives_the_bits_of_the_cpu():
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    same(everything("cuda"), everything("cpu"))


# ---- optimising ----


@pytest.mark.parametrize(("members", "size"), [(1, 1), (1, 9155), (3, 5), (7, 33), (64, 700)])
def test_adam_is_that_of_torch(members: int, size: int) -> None:
    """As long as the members do not differ, all of them are one tensor to torch's; which rounds in another order."""
    generator = torch.Generator().manual_seed(0)
    parameters = torch.randn(members, size, generator=generator)
    reference = parameters.double().requires_grad_()
    adam = torch.optim.Adam([reference], lr=3e-3, eps=1e-5)
    gradient, momentum, square = torch.zeros(3, members, size)
    factor, rate, count = torch.full((members, 1), 0.5), torch.full((members, 1), 3e-3), torch.zeros(members)
    step = kernels.bind_adam(parameters, gradient, momentum, square, factor, rate, count)
    for _ in range(20):
        gradient.copy_(torch.randn(members, size, generator=generator))
        reference.grad = 0.5 * gradient.double()
        adam.step()
        count += 1
        step(0)
    # 20 steps of at most 3e-3, each with some roundings of float32, onto numbers of at most 8
    torch.testing.assert_close(parameters.double(), reference.detach(), rtol=0, atol=20 * 8 * 2**-23)


def test_members_have_their_own_rates() -> None:
    gradient = torch.randn(2, 40, generator=torch.Generator().manual_seed(0))
    found = {}
    for members in ([0], [1], [0, 1]):
        parameters, momentum, square = torch.zeros(3, len(members), 40)
        factor, rate = torch.tensor([[0.1], [1.0]])[members], torch.tensor([[1e-3], [0.0]])[members]
        step = kernels.bind_adam(
            parameters, gradient[members], momentum, square, factor, rate, torch.ones(len(members))
        )
        step(0)
        found[tuple(members)] = parameters
    assert torch.equal(found[0, 1], torch.cat([found[0,], found[1,]]))
    assert found[0,].abs().min() > 9e-4
    assert not found[1,].any()


def test_adam_refuses() -> None:
    x, one = torch.zeros(2, 3), torch.zeros(2, 1)
    with pytest.raises(ValueError, match=r"rate must have the shape \(2, 1\)"):
        kernels.bind_adam(x, x, x, x, one, torch.zeros(2), torch.zeros(2))
    with pytest.raises(TypeError, match=r"gradient must be torch\.float32"):
        kernels.bind_adam(x, x.double(), x, x, one, one, torch.zeros(2))


# ---- on a GPU ----


@pytest.mark.parametrize("kind", ["categorical", "normal", "shuffle", "scan", "gae", "adam"])
def test_a_cuda_graph_advances_the_counter(kind):
    """What a graph draws while it advances the counter on the device is what the CPU draws at those counters."""
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    results = {}
    for device in ("cpu", "cuda"):
        x = random_logits((6,), 2, 300).to(device)
        counter, seeds = counter_at().to(device), seeds_of(2).to(device)
        log_prob = torch.zeros(2, 300, device=device)
        if kind == "categorical":
            out = torch.zeros(2, 300, 1, dtype=torch.int32, device=device)
            call = kernels.CategoricalSampler((6,), device=device).bind(seeds, counter, x, None, out, log_prob)
        elif kind == "normal":
            out, log_std = torch.zeros_like(x), torch.zeros(2, 6, device=device)
            call = kernels.NormalSampler(6, device).bind(seeds, counter, x, log_std, out, log_prob)
        elif kind == "shuffle":
            out, counts = torch.zeros(2, 300, dtype=torch.int64, device=device), torch.tensor([300, 7], device=device)

            def call(offset, seeds=seeds, counter=counter, counts=counts, out=out):
                kernels.bind_shuffle(seeds, counter, counts, out)(offset)
        elif kind == "adam":
            out, (momentum, square) = x[..., 0].clone(), torch.zeros(2, 2, 300, device=device)
            factor, count = torch.ones(2, 1, device=device), torch.ones(2, device=device)
            call = kernels.bind_adam(out, x[..., 1].contiguous(), momentum, square, factor, factor, count)
        elif kind == "gae":
            out, flags = x[:1].clone(), torch.zeros(2, 300, 6, dtype=torch.bool, device=device)
            gamma = torch.full_like(x[0], 0.9)

            def call(offset, x=x, flags=flags, gamma=gamma, out=out):
                out.copy_(kernels.gae(out, x, ~flags, flags[:1], flags[:1], None, gamma, gamma, False)[0])
        else:
            out, decay = x.clone(), torch.full_like(x, 0.9)

            def call(offset, decay=decay, out=out):
                out.copy_(kernels.scan(out, decay))

        first = out.clone()
        call(5)
        out.copy_(first)
        replay = None
        if device == "cuda":
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                call(5)
                counter += 1
            replay = graph.replay
        results[device] = []
        for _ in range(4):
            if replay:
                replay()
            else:
                call(5)
                counter += 1
            results[device].append(out.cpu().clone())
    same(results["cuda"], results["cpu"])
    assert not torch.equal(results["cpu"][0], results["cpu"][1])
