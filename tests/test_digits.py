"""The pictures of MNISTBandit: those that are drawn, and those that are read from files."""

from __future__ import annotations

import gzip
import hashlib

import numpy as np
import pytest

import gpuzoo
from gpuzoo.envs.bsuite.digits import PER_DIGIT, drawn

ID = "MNISTBandit-bsuite-v0"


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return head + array.astype(np.uint8).tobytes()


@pytest.fixture
def pictures():
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (30, 6, 5), dtype=np.uint8), rng.integers(0, 10, 30, dtype=np.uint8)


def seen(data, **options):
    envs = gpuzoo.make(ID, 50, device="cpu", data=str(data), **options)
    observations, _ = envs.reset(seed=0)
    return observations["agent"][:, 0], envs.simulator.arrays["index"].copy()


def test_drawn_digits_are_the_same_everywhere():
    images, labels = drawn()
    assert images.shape == (10 * PER_DIGIT, 28, 28)
    assert images.dtype == labels.dtype == np.uint8
    assert (np.bincount(labels) == PER_DIGIT).all()
    assert hashlib.sha256(images.tobytes()).hexdigest()[:16] == "b40e3d689eb3ba35"


@pytest.mark.rotates
def test_drawn_digits_look_like_what_they_are():
    """The nearest other picture is mostly of the same digit, and no two are the same."""
    images, labels = drawn()
    flat = images.reshape(len(images), -1).astype(float)
    distance = ((flat[:, None] - flat[None]) ** 2).sum(-1)
    np.fill_diagonal(distance, np.inf)
    assert distance.min() > 0
    assert (labels[distance.argmin(1)] == labels).mean() > 0.9


@pytest.mark.parametrize("packed", [False, True])
def test_idx_files(tmp_path, pictures, packed):
    for name, array in zip(("train-images-idx3-ubyte", "train-labels-idx1-ubyte"), pictures, strict=True):
        data = idx(array)
        (tmp_path / (name + ".gz" * packed)).write_bytes(gzip.compress(data) if packed else data)
    observations, index = seen(tmp_path, signed_pixels=False)
    np.testing.assert_array_equal(observations, pictures[0][index].astype(np.float32) / 255)


@pytest.mark.parametrize("names", [("x_train", "y_train"), ("images", "labels")])
def test_npz_files(tmp_path, pictures, names):
    path = tmp_path / "pictures.npz"
    np.savez(path, **dict(zip(names, (pictures[0], pictures[1].astype(np.int64)), strict=True)))
    observations, index = seen(path)
    np.testing.assert_array_equal(observations, pictures[0].view(np.int8)[index].astype(np.float32) / 255)
    envs = gpuzoo.make(ID, 50, device="cpu", autoreset_mode="disabled", data=str(path))
    envs.reset(seed=0)
    labels = pictures[1][envs.simulator.arrays["index"]].astype(np.int32)
    _, rewards, *_ = envs.step({"agent": labels[:, None]})
    assert (rewards["agent"] == 1).all()


def test_what_is_wrong_with_a_path_is_said(tmp_path, pictures):
    images, labels = pictures

    def refused(data, error, words):
        with pytest.raises(error, match=words):
            gpuzoo.make(ID, 1, device="cpu", data=str(data))

    refused(tmp_path / "nowhere", FileNotFoundError, "there is no such file or folder")
    refused(tmp_path, FileNotFoundError, "there is neither train-images-idx3-ubyte nor")
    file = tmp_path / "train-images-idx3-ubyte"
    file.write_bytes(idx(images)[:-1])
    refused(tmp_path, ValueError, "is not a complete idx file")
    path = tmp_path / "text.npz"
    path.write_text("no archive")
    refused(path, ValueError, "neither a folder nor an .npz file")
    for k, (arrays, words) in enumerate(
        [
            ({"x": images}, "want x_train and y_train, or images and labels"),
            ({"images": images, "labels": labels[:-1]}, r"not \(30, 6, 5\) of uint8 and \(29,\)"),
            ({"images": images / 255, "labels": labels}, "of float64"),
            ({"images": images, "labels": labels + 1}, "labels must be integers from 0 to 9"),
        ]
    ):
        path = tmp_path / f"{k}.npz"
        np.savez(path, **arrays)
        refused(path, ValueError, words)
