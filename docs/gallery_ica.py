"""Pictures of recordings that were unmixed: `python docs/gallery_ica.py`, where the folder UNMIX_DATA has them.

They are written to docs/_static, as when the pages are built; what was measured is printed, and told on the page.
"""

import os
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.io import wavfile
from scipy.signal import find_peaks
from sklearn.decomposition import FastICA as Peer

from unmix import FastICA

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from pictures import COLOURS, STYLE, figure, plt, signals

DATA = Path(os.environ.get("UNMIX_DATA", HERE.parents[1] / "shared" / "data"))


def party(folder):
    """Three sounds and a noise, mixed by a matrix drawn at random.

    The mixtures that come with the sounds have rank 2, and hold but the first of them.
    """
    S = np.stack([wavfile.read(folder / f"source{i}.wav")[1] for i in (5, 7, 9)], 1).astype(float) - 128
    rng = np.random.default_rng(1)
    X = np.column_stack([S / S.std(axis=0), rng.standard_normal(len(S))]) @ rng.normal(size=(4, 4))
    found = FastICA(random_state=0).fit_transform(X)
    for name, Y in (("measured", X), ("unmix", found), ("scikit-learn", Peer(random_state=0).fit_transform(X))):
        print(f"cocktail-party, {name}: {ratios(Y, S).round(1).tolist()} dB")
    order, sign = matched(found, S)
    fig, axes = figure(10, 3.2, 1, 3)
    t = np.arange(len(X))[::10]
    shown = (("sources", S), ("microphones", X), ("components", found[:, order] * sign))
    for ax, (title, Y) in zip(axes, shown, strict=True):
        own = COLOURS[:3] if Y.shape[1] == 3 else ["0.35"] * 4
        signals(ax, t, Y[::10], title, own)
        for line in ax.lines:
            line.set_linewidth(0.35)
    told = ratios(found, S)
    for i, value in enumerate(told):
        axes[2].text(1.01 * t[-1], -i, f"{value:.0f} dB", va="center", color=COLOURS[i])
    return fig


def matched(found, S):
    """Which component is most like each source, and its sign."""
    r = np.corrcoef(found.T, S.T)[: found.shape[1], found.shape[1] :]
    order = np.abs(r).argmax(axis=0)
    return order, np.sign(r[order, np.arange(S.shape[1])])


def ratios(found, S):
    """Signal-to-distortion ratios: of what is most like each source, its variance over that of all else in it."""
    r = np.abs(np.corrcoef(found.T, S.T)[: found.shape[1], found.shape[1] :]).max(axis=0)
    return 10 * np.log10(r**2 / (1 - r**2))


def heart(folder):
    """Eight electrodes on a pregnant woman: two hearts, of which the smaller beats faster."""
    d = np.loadtxt(folder / "FOETAL_ECG.dat.gz")
    t, X = d[:, 0], d[:, 1:]
    model = FastICA(random_state=0, n_init=5).fit(X)
    found = model.transform(X)
    beats = [rate(s) for s in found.T]
    tails = (found**4).mean(axis=0)
    print("foetal-ecg, beats a minute:", [f"{b:.0f}" for b in beats], "kurtosis:", tails.round(1).tolist())
    mother = rate(X[:, 7])
    child = max((j for j in range(8) if 110 < beats[j] < 180), key=lambda j: tails[j])
    print(f"mother {mother:.0f}, child {beats[child]:.0f}: component {child}")
    fig, axes = figure(10, 4.2, 1, 2)
    few = t < 4
    signals(axes[0], t[few], X[few], "electrodes (five on the belly, three on the chest)", ["0.35"] * 8)
    colours = [COLOURS[1] if j == child else COLOURS[0] if abs(beats[j] - mother) < 5 and tails[j] > 6 else "0.6"
               for j in range(8)]  # fmt: skip
    signals(axes[1], t[few], found[few], "components", colours)
    axes[1].text(4.02, -child, f"child\n{beats[child]:.0f}/min", color=COLOURS[1], va="center")
    first = colours.index(COLOURS[0])
    axes[1].text(4.02, -first, f"mother\n{beats[first]:.0f}/min", color=COLOURS[0], va="center")
    return fig


def rate(x):
    """Beats in a minute, by the distance of peaks of the squared slope, at 250 a second."""
    power = np.convolve(np.diff(x) ** 2, np.ones(8), "same")
    peaks, _ = find_peaks(power, height=0.3 * np.sort(power)[-60], distance=75)
    return 60 * 250 / np.median(np.diff(peaks))


def draw_all(folder):
    """Draw what there are recordings of."""
    for name, draw in {"cocktail-party": party, "foetal-ecg": heart}.items():
        if not (DATA / name).exists():
            print(f"no {name} in {DATA}: left out")
            continue
        with plt.rc_context(STYLE), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of components that are noise
            draw(DATA / name).savefig(Path(folder) / f"{name}.png", dpi=110)


if __name__ == "__main__":
    draw_all(HERE / "_static")
