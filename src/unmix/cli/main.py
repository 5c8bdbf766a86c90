"""Commands for people with a file. Heavy imports happen inside the commands: `unmix --help` answers at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import unmix


class Plain(click.Group):
    """A group whose errors are one plain sentence, not a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what the library says about bad input is what the user reads."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # `unmix models | head`: nobody reads on, and click ends quietly
            raise
        except (ValueError, TypeError, OSError, MemoryError, ImportError, NotImplementedError) as e:
            raise click.ClickException(str(e)) from e


@click.group(cls=Plain, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(unmix.__version__, prog_name="unmix")
def main() -> None:
    """Find the hidden parts of data: clusters, components, topics, factors.

    To begin, on any table of numbers (empty cells mean "not observed"):

    \b
      unmix models                                   which models there are
      unmix info table.csv                           what the file holds
      unmix fit GaussianMixture table.csv --k 3      find three groups
      unmix info table.unmix                         what was found
      unmix transform table.unmix table.csv --out groups.csv
    """


@main.command()
def models() -> None:
    """List the models, and what each takes and gives."""
    from unmix.model.facts import GIVES, TAKES, facts, words

    for name, cls in unmix.models().items():
        told = facts(cls)
        k = _k_name(cls)
        click.echo(f"{name}: {told.finds}" + (f" (--k is {k})" if k else ""))
        both = (("takes", words(told, TAKES)), ("gives", words(told, GIVES)))
        click.echo("    " + "; ".join(f"{verb} {what}" for verb, what in both if what))


@main.command()
@click.argument("model")
@click.argument("file", type=click.Path(exists=True))
@click.option("--k", type=int, help="How many parts (n_clusters, n_components: whatever the model calls it).")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other parameter; may be repeated.")
@click.option("--columns", help="Which columns, by name, separated by commas; all by default.")
@click.option("--weights", help="Column that says how many times each row counts.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same result.")
@click.option("--out", type=click.Path(), help="Where to save the model.  [default: FILE with the extension .unmix]")
@click.option("--threads", type=int, help="Threads to use.  [default: all cores]")
@click.option(
    "--checkpoint", type=click.Path(), help="Save the state here; after a crash the same command resumes from it."
)
def fit(
    model: str,
    file: str,
    k: int | None,
    settings: tuple[str, ...],
    columns: str | None,
    weights: str | None,
    seed: int,
    out: str | None,
    threads: int | None,
    checkpoint: str | None,
) -> None:
    """Fit MODEL to the rows of FILE and save it.

    \b
    Examples:
      unmix fit KMeans points.parquet --k 8
      unmix fit PCA spectra.npy --k 5 --set whiten=true
      unmix fit NMF counts.npz --k 20 --set beta_loss=kullback-leibler --out topics.unmix
      unmix fit GaussianMixture big_folder/ --k 12 --checkpoint big.state

    FILE may be larger than memory: it is read block by block, pass by pass.
    """
    from unmix.engine.sources import as_source

    cls = _model(model)
    params = dict(_setting(s, cls) for s in settings)
    if k is not None:
        params[_k_name(cls) or "k"] = k
    if "random_state" in _names(cls):
        params.setdefault("random_state", seed)
    target = Path(out) if out else Path(file.rstrip("/")).with_suffix(".unmix")
    if not target.parent.is_dir():
        raise ValueError(f"--out {str(target)!r}: the folder {str(target.parent)!r} does not exist; create it first")
    chosen, w = _columns(file, columns, weights)
    estimator = cls(**params)
    source = as_source(file, columns=chosen)
    with unmix.config(progress="auto", n_jobs=threads, checkpoint=checkpoint):
        estimator.fit(source, sample_weight=w)
    estimator.save(target)
    _summary(estimator, target.name)
    _console().print(f"\nkept in {target}; next:  unmix transform {target} {file} --out rows.csv")


@main.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("file", type=click.Path(exists=True))
@click.option("--out", required=True, type=click.Path(), help="Where to write: .csv, .parquet or .npy.")
@click.option("--labels", is_flag=True, help="Write each row's label (predict) instead of its parts (transform).")
def transform(model: str, file: str, out: str, labels: bool) -> None:
    """Write what MODEL (a .unmix file) says about each row of FILE.

    \b
    Examples:
      unmix transform points.unmix new.csv --labels --out labels.csv
      unmix transform topics.unmix counts.npz --out shares.parquet
    """
    from unmix.engine.sources import as_source
    from unmix.io.write import write_rows
    from unmix.model.capabilities import Groups

    estimator = unmix.load(model)
    if labels and not isinstance(estimator, Groups):
        raise ValueError(f"{type(estimator).__name__} has no labels: leave out --labels")
    names = ["label"] if labels else [str(n) for n in estimator.get_feature_names_out()]
    source = as_source(file, columns=estimator.column_names)
    method = "assign" if labels else "encode"
    rows = (b.reshape(len(b), -1) for b in estimator.stream(method, source))
    write_rows(out, rows, names)
    _console().print(f"{source.n:,} rows, {len(names)} columns written to {out}")


@main.command()
@click.argument("file", type=click.Path(exists=True))
def info(file: str) -> None:
    """Tell what FILE holds: a saved model (.unmix), or a table of data."""
    if file.endswith(".unmix"):
        _summary(unmix.load(file), Path(file).name)
        return
    from rich.table import Table

    from unmix.engine.sources import as_source

    source = as_source(file)
    console = _console()
    kind = "sparse" if source.sparse else "dense"
    console.print(f"{Path(file).name}: {source.n:,} rows × {source.d:,} columns, {kind} {source.dtype}")
    if source.sparse:
        return
    head = source.read(0, min(source.n, 10_000))
    import numpy as np

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("column")
    for name in ("missing", "min", "mean", "max"):
        table.add_column(name, justify="right")
    for j in range(min(source.d, 20)):
        column = head[:, j]
        seen = column[~np.isnan(column)]
        numbers = [f"{f(seen):.4g}" if len(seen) else "–" for f in (np.min, np.mean, np.max)]
        table.add_row(source.names[j] if source.names else str(j), f"{1 - len(seen) / len(column):.1%}", *numbers)
    console.print(table)
    if source.d > 20:
        console.print(f"… and {source.d - 20:,} more columns")
    if source.n > len(head):
        console.print(f"(of the first {len(head):,} rows)")


def _model(name: str) -> Any:
    """The model of this name, in any case; else an error that lists the names."""
    found = {n.lower(): n for n in unmix._MODELS}.get(name.lower())
    if found is None:
        from difflib import get_close_matches

        close = get_close_matches(name.lower(), [n.lower() for n in unmix._MODELS], 1, 0.5)
        hint = next((f" Did you mean {n}?" for n in unmix._MODELS if close and n.lower() == close[0]), "")
        raise ValueError(f"MODEL={name!r} is not known.{hint} The models are {', '.join(unmix._MODELS)}")
    return getattr(unmix, found)


def _k_name(cls: Any) -> str | None:
    """What the model calls its number of parts."""
    return next((n for n in ("n_clusters", "n_components") if n in _names(cls)), None)


def _names(cls: Any) -> list[str]:
    """Names of the model's parameters."""
    return list(cls().get_params(deep=False))


def _setting(text: str, cls: Any) -> tuple[str, Any]:
    """NAME=VALUE, the value as a number, true/false/none or text."""
    import json

    name, equals, value = text.partition("=")
    if not equals or name not in _names(cls):
        raise ValueError(f"--set {text!r}: give NAME=VALUE, where NAME is one of {', '.join(_names(cls))}")
    try:
        return name, json.loads({"true": "true", "false": "false", "none": "null"}.get(value.lower(), value))
    except json.JSONDecodeError:
        return name, value


def _columns(file: str, columns: str | None, weights: str | None) -> tuple[list[str] | None, Any]:
    """The columns to fit on, and the weights from their own column."""
    from unmix.engine.sources import as_source

    chosen = None if columns is None else [c.strip() for c in columns.split(",")]
    if weights is None:
        return chosen, None
    w = as_source(file, columns=[weights]).whole(unmix.get_config().budget)[:, 0]
    if chosen is None:
        chosen = [c for c in as_source(file).names or [] if c != weights]
    return chosen, w


def _summary(model: Any, title: str) -> None:
    """What was fitted, how it went, and the parts."""
    from rich.table import Table

    console = _console()
    last = model.trace_[-1] if model.trace_ else None
    console.print(f"{title}: {model!r}".replace("\n", ""))
    steps = len(model.trace_) + sum(len(stage.trace) for stage in model.stages_)
    how = f"{model.result_} after {steps} step{'s' * (steps != 1)}" if steps else f"{model.result_} in closed form"
    if last is not None:
        how += f", {last.seconds:.2f} s, objective {last.objective:.6g} a row"
    console.print(how)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("found")
    table.add_column("shape")
    table.add_column("first values")
    import numpy as np

    for name, value in sorted(vars(model).items()):
        if (
            name.startswith("_")
            or not name.endswith("_")
            or name in ("trace_", "feature_names_in_", "result_", "n_iter_")
        ):
            continue
        if isinstance(value, np.ndarray):
            head = ", ".join(f"{v:.4g}" for v in value.ravel()[:4]) if value.dtype.kind in "fiu" else ""
            table.add_row(name, " × ".join(map(str, value.shape)), head + (" …" if value.size > 4 else ""))
        elif isinstance(value, (int, float)):
            table.add_row(name, "", f"{value:.6g}")
    console.print(table)


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False, markup=False)  # names of columns and files may hold brackets
