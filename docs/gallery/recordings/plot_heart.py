"""
The heart of an unborn child
============================

Eight electrodes on a pregnant woman: five on the belly, three on the chest. No electrode shows the child's heart alone;
one component does. Currents add up at once, so ICA's model is nearly exact here.

The recording is ``FOETAL_ECG.dat`` of DaISy (De Moor, KU Leuven): 250 numbers a second, ten seconds.
"""

# %%
import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import find_peaks

import unmix

recorded = np.loadtxt(Path(os.environ["UNMIX_DATA"]) / "foetal-ecg" / "FOETAL_ECG.dat.gz")
t, X = recorded[:, 0], recorded[:, 1:]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # some components are noise, and the fit says so
    found = unmix.FastICA(random_state=0, n_init=5).fit_transform(X)


def rate(x):
    """Beats in a minute, by the distance of peaks of the squared slope."""
    power = np.convolve(np.diff(x) ** 2, np.ones(8), "same")
    peaks, _ = find_peaks(power, height=0.3 * np.sort(power)[-60], distance=75)
    return 60 * 250 / np.median(np.diff(peaks))


beats = np.array([rate(x) for x in found.T])
print("beats a minute:", beats.round().astype(int))

# %%
# Components come from the least Gaussian on: spikes first, noise last. The first three beat with the mother, the
# fourth with the child; what is "counted" in the others is noise.
fig, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
few = t < 4
for ax, (title, Y) in zip(axes, {"electrodes": X, "components": found}.items(), strict=True):
    for i, y in enumerate(((Y - Y.mean(axis=0)) / np.abs(Y - Y.mean(axis=0)).max(axis=0)).T):
        mine = {0: "C0", 1: "C0", 2: "C0", 3: "C3"}.get(i, "0.6") if title == "components" else "0.35"
        ax.plot(t[few], -i + 0.45 * y[few], lw=0.9, color=mine)
    ax.set(title=title, xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
for i, who in ((0, "mother"), (3, "child")):
    axes[1].text(4.05, -i, f"{who}\n{beats[i]:.0f}/min", va="center", color="C0" if i == 0 else "C3")
