"""
Two microphones in a room
=========================

Speech and music, each recorded by two microphones. In a room a sound reaches the microphones at different times, and
again from the walls, while ICA's model is a mixture of instants. So this is where it ends: the components are less
alike than the microphones, but something of each sound is left in both.

The recordings are ``speech_x1.wav`` to ``music_x2.wav`` of shantistewart/Independent-Component-Analysis on GitHub; what
each source was by itself is not known.
"""

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.io import wavfile

import unmix

folder = Path(os.environ["UNMIX_DATA"]) / "two-mic-mixes"


def loudness(x):
    """Root mean squares of fortieths of a second, at 16,000 numbers a second, over their maximum."""
    x = x[: len(x) // 400 * 400] - x.mean(axis=0)
    rms = np.sqrt((x.reshape(-1, 400, 2) ** 2).mean(axis=1))
    return rms / rms.max(axis=0)


def echo(x):
    """The largest correlation of the two columns at any lag up to 200, and the lag."""
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    r = [np.mean(z[200:-200, 0] * z[200 + lag : len(z) - 200 + lag, 1]) for lag in range(-200, 200)]
    return max(zip(np.abs(r), range(-200, 200), strict=True))


fig, axes = plt.subplots(2, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
for row, name in zip(axes, ("speech", "music"), strict=True):
    heard = np.stack([wavfile.read(folder / f"{name}_x{i}.wav")[1] for i in (1, 2)], 1).astype(float)
    parts = unmix.FastICA(random_state=0).fit_transform(heard)
    for ax, (title, x) in zip(row, {"microphones": heard, "components": parts}.items(), strict=True):
        r, lag = echo(x)
        print(f"{name}, {title}: r = {r:.2f} at a lag of {1000 * abs(lag) / 16000:.1f} ms")
        loud = loudness(x)
        together = np.corrcoef(loud.T)[0, 1]
        for i in range(2):
            ax.fill_between(np.arange(len(loud)) / 40, loud[:, i] - 1.1 * i, -1.1 * i, color=f"C{i}", lw=0)
        ax.set(title=f"{name}: {title}, loud together: r = {together:.2f}", yticks=[])
for ax in axes[1]:
    ax.set_xlabel("seconds")

# %%
# At the same instant components are uncorrelated, by construction; a moment later they are not. For rooms, unmix the
# spectra of short pieces, frequency by frequency; that is no part of this library.
