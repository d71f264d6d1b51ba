"""Video files by MoviePy, which wants an older Pillow than the main environment has."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import RecordVideo
from moviepy import VideoFileClip


# MoviePy leaves its reader's pipe to the collector.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <_io.FileIO:pytest.PytestUnraisableExceptionWarning")
def test_record_video(tmp_path):
    folder = tmp_path / "videos"
    env = gymnasium.make("gpuzoo:gpuzoo/CartPole-v1", render_mode="rgb_array", max_episode_steps=5)
    env = RecordVideo(env, str(folder), episode_trigger=lambda episode: episode == 0)
    env.reset(seed=0)
    frames = [env.render()]
    for _ in range(5):
        env.step(env.action_space.sample())
        frames.append(env.render())
    env.close()
    (path,) = folder.glob("*.mp4")
    with VideoFileClip(str(path)) as clip:
        video = np.array(list(clip.iter_frames()))
    assert video.shape == np.shape(frames), "the first observation, and one for each step"
    # what the codec loses
    assert np.abs(video.astype(float) - frames).mean() < 5
