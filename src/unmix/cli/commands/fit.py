"""`unmix fit`."""

from __future__ import annotations

from pathlib import Path

import click

from unmix.cli.options import FORCE, RUN, SAY, SCALE, TABLE, WEIGHTS, Ask, asking


@click.command("fit", short_help="Fit any model and save it.")
@asking(
    click.argument("model"),
    *TABLE,
    click.option(
        "-k",
        "--k",
        type=int,
        metavar="N",
        help="How many parts (n_clusters or n_components, as the model says).",
    ),
    click.option(
        "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other parameter; may be repeated."
    ),
    WEIGHTS,
    SCALE,
    *RUN,
    click.option(
        "--out", type=click.Path(), help="Where to save the model.  [default: FILE with the extension .unmix]"
    ),
    click.option(
        "--checkpoint", type=click.Path(), help="Save the state here; after a crash the same command resumes."
    ),
    FORCE,
    *SAY,
)
def command(ask: Ask, model: str, k: int | None, settings: tuple[str, ...], checkpoint: str | None) -> None:
    """Fit MODEL to the rows of FILE and save it.

    \b
    Examples:
      unmix fit KMeans points.parquet --k 8
      unmix fit PCA spectra.npy --k 5 --set whiten=true
      unmix fit NMF counts.npz --k 20 --set beta_loss=kullback-leibler --out topics.unmix
      unmix fit GaussianMixture big_folder/ --k 12 --checkpoint big.state

    FILE may be larger than memory: it is read block by block, pass by pass.
    """
    from unmix.cli.ends import keep
    from unmix.cli.files import check_target, check_targets
    from unmix.cli.fits import fitted, made, model_class, show
    from unmix.cli.session import session
    from unmix.cli.tables import opened, weights_of

    cls = model_class(model)
    estimator = made(cls, k, settings, ask.seed)
    ask.save, ask.out = ask.out or _beside(ask.file), None
    with session(ask, checkpoint=checkpoint) as say:
        check_targets(ask, [ask.file], save="--out")
        if checkpoint is not None:
            check_target("--checkpoint", checkpoint, [ask.file], force=True)
        source = opened(ask, say)
        w = weights_of(source)
        show(fitted(estimator, source, w), source, w, say)
        keep(say, estimator)


def _beside(file: str) -> str:
    """The name of the model's file, from that of the table."""
    if file == "-":
        return "model.unmix"
    from unmix.cli.files import stem

    return str(Path(file.rstrip("/")).with_name(f"{stem(file)}.unmix"))
