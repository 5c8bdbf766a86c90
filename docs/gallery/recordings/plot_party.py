"""
A party: three sounds, four microphones
=======================================

Three recorded sounds and white noise, mixed by a matrix drawn at random. ``FastICA`` is told neither the sounds nor
the matrix, and gives the sounds back.

The sounds are ``source5.wav``, ``source7.wav`` and ``source9.wav`` of the R package JADE.
"""

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.io import wavfile
from sklearn.decomposition import FastICA as Peer

import unmix

folder = Path(os.environ["UNMIX_DATA"]) / "cocktail-party"
sounds = np.stack([wavfile.read(folder / f"source{i}.wav")[1] for i in (5, 7, 9)], 1).astype(float) - 128
rng = np.random.default_rng(1)
X = np.column_stack([sounds / sounds.std(axis=0), rng.standard_normal(len(sounds))]) @ rng.normal(size=(4, 4))
found = unmix.FastICA(random_state=0).fit_transform(X)

# %%
# How much of each sound is in what is most like it: its variance over that of all else there, in decibels.


def alike(Y):
    """The correlations of each column with each sound."""
    return np.corrcoef(Y.T, sounds.T)[:4, 4:]


def decibels(Y):
    r = np.abs(alike(Y)).max(axis=0)
    return (10 * np.log10(r**2 / (1 - r**2))).round().astype(int).tolist()


print("the best microphone:", decibels(X))
print("unmix.FastICA:", decibels(found))
print("sklearn's FastICA:", decibels(Peer(random_state=0).fit_transform(X)))

# %%
# The components, put in the order of the sounds and turned to their sign, neither of which the mixtures tell.
order = np.abs(alike(found)).argmax(axis=0)
back = found[:, order] * np.sign(alike(found)[order, range(3)])
fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
for ax, (title, Y) in zip(axes, {"sounds": sounds, "microphones": X, "components": back}.items(), strict=True):
    for i, y in enumerate((Y / np.quantile(np.abs(Y), 0.999, axis=0)).T):
        ax.plot(-i + 0.45 * y[::10], lw=0.35, color="0.35" if title == "microphones" else f"C{i}")
    ax.set(title=title, xticks=[], yticks=[])
