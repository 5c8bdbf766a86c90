"""How well each column is filled, in its own units, and by what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unmix.imputation.choice import COMBINATION, Choice, share
from unmix.imputation.columns import Columns

SHOWN = 30  # columns
YES_OR_NO = ("boolean", "category")


class Report(NamedTuple):
    """What an `Imputer` found; print it."""

    chosen: str
    reason: str
    scores: dict[str, float]
    names: list[str]
    kinds: list[str]
    errors: np.ndarray
    baseline: np.ndarray
    candidates: list[str]
    weights: np.ndarray
    notes: list[str]

    def lines(self) -> list[list[str]]:
        """A line for each column: its name, what a held-out cell is off by, what the plainest guess is, by whom."""
        out = []
        for g, name in enumerate(self.names):
            wrong = self.kinds[g] in YES_OR_NO
            told = [f"{100 * v:.0f}% wrong" if wrong else f"±{v:.3g}" for v in (self.errors[g], self.baseline[g])]
            if np.isnan(self.errors[g]):
                told = ["–", "–"]
            order = [c for c in np.argsort(-self.weights[g]) if self.weights[g, c] >= 0.1][:3]
            by = ", ".join(f"{self.candidates[c]} {100 * self.weights[g, c]:.0f}%" for c in order)
            out.append([name, *told, by])
        return out

    def __str__(self) -> str:
        lines = [f"filled by the {self.chosen}: {self.reason}" if self.chosen == COMBINATION else
                 f"filled by {self.chosen!r}: {self.reason}", ""]  # fmt: skip
        rows = [["column", "held-out cells are off by", "mean or commonest value", "by"], *self.lines()[:SHOWN]]
        widths = [max(len(row[j]) for row in rows) for j in range(4)]
        lines += ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        lines += [f"… and {len(self.names) - SHOWN} more"] * (len(self.names) > SHOWN)
        lines += ["", "squared error of held-out cells, in that of the column means:"]
        lines += [f"  {name}: {share(value)}" for name, value in self.scores.items()]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def how_well(
    choice: Choice, groups: Sequence[np.ndarray], columns: Columns, uses: Sequence[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Errors of held-out cells by group, ours and those of the mean or the commonest level; NaN where are none."""
    out = np.full((2, len(groups)), np.nan)
    for g, own in enumerate(groups):
        if choice.held is None or not (choice.held.group == g).any():
            continue
        use = uses[g] if uses else None
        truth, guess = (cells(choice, g, own, v) for v in (choice.held.truth, choice.guess))
        mean = np.zeros_like(truth)
        if use is not None and (use.levels or use.kind == "boolean"):
            truth, guess, mean = (levels(v, columns, own, use) for v in (truth, guess, mean))
            out[:, g] = (truth != guess).mean(), (truth != mean).mean()
        else:
            unit = columns.scale[own] * (1.0 if use is None else use.scale)
            out[:, g] = [unit[0] * np.sqrt(np.mean((truth - v) ** 2)) for v in (guess, mean)]
    return out[0], out[1]


def cells(choice: Choice, g: int, own: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Held-out values of a group as rows."""
    assert choice.held is not None
    return np.column_stack([values[(choice.held.group == g) & (choice.held.column == j)] for j in own])


def levels(y: np.ndarray, columns: Columns, own: np.ndarray, use: Any) -> np.ndarray:
    """Which level rows of a category, or of yes and no, are."""
    x = (y * columns.scale[own] + columns.center[own]) * use.scale + np.array(use.centers)
    return np.asarray(x.argmax(axis=1) if use.width > 1 else x[:, 0] > 0.5)
