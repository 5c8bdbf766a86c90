"""`unmix select`."""

from __future__ import annotations

import shlex
from typing import Any

import click

from unmix.cli.options import FORCE, RUN, SAY, SCALE, TABLE, WEIGHTS, Ask, asking


@click.command("select", short_help="How many groups there are, and why.")
@asking(
    *TABLE,
    click.argument("model", default="", required=False),
    click.option("-k", "--k", metavar="LOW-HIGH", help="Numbers to try, as 1-8 or 2,4,8.  [default: chosen by itself]"),
    WEIGHTS,
    SCALE,
    *RUN,
    click.option("--plot", type=click.Path(), help="Draw the criteria against k into this file (.png, .svg, .pdf)."),
    FORCE,
    *SAY,
)
def command(ask: Ask, model: str, k: str | None, plot: str | None) -> None:
    """Tell how many groups there are in FILE, and why.

    \b
    Examples:
      unmix select table.csv
      unmix select table.csv GaussianMixture --k 1-8 --plot how_many.png
      unmix select counts.npz NMF --k 2,5,10,20

    MODEL is one of `unmix models`; by default KMeans, or Mixture where the table has categories.
    """
    from unmix.cli.choose import asked_of, chosen_model, shown
    from unmix.cli.files import check_target
    from unmix.cli.fits import made, model_class
    from unmix.cli.session import session
    from unmix.cli.tables import opened
    from unmix.model.capabilities import Groups

    with session(ask) as say:
        if plot is not None:
            check_target("--plot", plot, [ask.file], ask.force)
        cls = model_class(model) if model else None
        source = opened(ask, say)
        cls = cls or chosen_model(source, say, "")
        answer = asked_of(made(cls, None, (), ask.seed), source, ask.seed, numbers(k), say)
        shown(answer, say)
        if plot is not None:
            _draw(answer, plot)
            say.give(plot=plot)
            say.hint(f"drawn in {plot}")
        if answer.k is not None and answer.k > 1:
            command = "cluster" if isinstance(answer.model, Groups) else "reduce"
            which = ["--model", cls.__name__] if model else []
            say.hint(
                "next:  "
                + shlex.join(["unmix", command, ask.file, "--k", str(answer.k), *which, "--out", "result.csv"])
            )


def numbers(text: str | None) -> list[int] | None:
    """Numbers of parts: 3, 1-8 or 2,4,8."""
    if text is None or text == "auto":
        return None
    out: list[int] = []
    for piece in text.split(","):
        low, dash, high = piece.strip().partition("-")
        if not low.isdigit() or (dash and not high.isdigit()) or int(low) > int(high or low):
            raise click.BadParameter(f"{text!r}: give numbers as 1-8 or 2,4,8", param_hint="--k")
        out += range(int(low), int(high or low) + 1)
    return out


def _draw(answer: Any, path: str) -> None:
    """The picture, in a file that appears when it is complete."""
    from pathlib import Path

    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from unmix.io.write import replacing

    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in ("png", "svg", "pdf"):
        raise ValueError(f"--plot {path!r}: end it in .png, .svg or .pdf")
    answer.plot()
    with replacing(path) as f:
        plt.gcf().savefig(f, format=kind, dpi=150)
    plt.close("all")
