"""`unmix reduce`."""

from __future__ import annotations

import click

from unmix.cli.options import FORCE, RUN, SAVE, SAY, SCALE, TABLE, WEIGHTS, Ask, asking, out


@click.command("reduce", short_help="Few components instead of many columns.")
@asking(
    *TABLE,
    click.option("-k", "--k", type=click.IntRange(1), metavar="N", help="How many components.  [default: see below]"),
    click.option("--model", default="PCA", show_default=True, help="PCA, FactorAnalysis, RobustPCA, NMF, …"),
    click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other parameter of the model."),
    WEIGHTS,
    SCALE,
    *RUN,
    out("the table with each row's scores"),
    SAVE,
    FORCE,
    *SAY,
)
def command(ask: Ask, k: int | None, model: str, settings: tuple[str, ...]) -> None:
    """Describe FILE by few components instead of many columns: what each is made of, and how much it tells.

    \b
    Examples:
      unmix reduce table.csv
      unmix reduce table.csv --k 2 --out scores.csv
      unmix reduce counts.csv --model NMF --k 5 --save parts.unmix

    Without --k, PCA takes the components that have more variance than those of unrelated columns would (parallel
    analysis), other models as many as unmix select finds.
    """
    from unmix.cli.choose import asked_of, settled_k
    from unmix.cli.ends import finish
    from unmix.cli.files import check_targets
    from unmix.cli.fits import fitted, k_name, made, model_class, show
    from unmix.cli.session import session
    from unmix.cli.tables import opened, weights_of
    from unmix.model.capabilities import Components

    with session(ask) as say:
        check_targets(ask, [ask.file])
        cls = model_class(model, "--model")
        if not issubclass(cls, Components):
            raise click.BadParameter(f"{cls.__name__} finds no components: say  unmix cluster", param_hint="--model")
        source = opened(ask, say)
        if k is None and cls.__name__ == "PCA" and not any(s.startswith("n_components=") for s in settings):
            settings = (*settings, "n_components=parallel")
        elif k is None and k_name(cls) is not None:
            answer = asked_of(made(cls, None, settings, ask.seed), source, ask.seed, None, say)
            k = settled_k(answer, say)
        w = weights_of(source)
        estimator = fitted(made(cls, k, settings, ask.seed), source, w)
        if "n_components=parallel" in settings:
            say.note("components with more variance than those of unrelated columns have (--k N for another number)")
        show(estimator, source, w, say)
        finish(say, source, estimator)
        if ask.out is None:
            say.next("reduce", "--out", "scores.csv", why="each row with its scores")
