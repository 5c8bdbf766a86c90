"""The model that a command asks for, its fit, and what it says of each row."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterator
from typing import Any

import click
import numpy as np

import unmix
from unmix.cli.session import Session
from unmix.engine.sources import Source
from unmix.explanation import FoundComponents, FoundGroups, explain
from unmix.explanation.words import plural
from unmix.model.capabilities import Components, Groups, Memberships
from unmix.table.errors import not_there

K_NAMES = ("n_clusters", "n_components")


def loaded(path: str) -> Any:
    """The model in a file."""
    if not os.path.exists(path):
        raise not_there(path)
    return unmix.load(path)


def model_class(name: str, option: str = "MODEL") -> Any:
    """The model of this name, in any case; else an error that lists the names."""
    known = list(unmix.models())
    found = {n.lower(): n for n in known}.get(name.lower())
    if found is None:
        lower = {n.lower(): n for n in known}
        close = difflib.get_close_matches(name.lower(), lower, 1, 0.5)
        hint = f"did you mean {lower[close[0]]}?" if close else f"the models are {', '.join(known)}"
        raise click.BadParameter(f"{name!r} is not known: {hint}", param_hint=option)
    return unmix.models()[found]


def k_name(cls: Any) -> str | None:
    """What the model calls its number of parts."""
    return next((name for name in K_NAMES if name in parameters(cls)), None)


def parameters(cls: Any) -> list[str]:
    """Names of the model's parameters."""
    return list(cls().get_params(deep=False))


def made(cls: Any, k: int | None, settings: tuple[str, ...], seed: int) -> Any:
    """The model with the parameters that were given."""
    params = dict(setting(text, cls) for text in settings)
    if k is not None:
        name = k_name(cls)
        if name is None:
            raise ValueError(f"--k: {cls.__name__} has no number of parts")
        params[name] = k
    if "random_state" in parameters(cls):
        params.setdefault("random_state", seed)
    return cls(**params)


def setting(text: str, cls: Any) -> tuple[str, Any]:
    """NAME=VALUE, the value as a number, true/false/none or text."""
    name, equals, value = text.partition("=")
    known = parameters(cls)
    if not equals or name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = (
            f"did you mean {near[0]!r}?"
            if near and equals
            else f"give NAME=VALUE, where NAME is one of {', '.join(known)}"
        )
        raise click.BadParameter(f"{text!r}: {hint}", param_hint="--set")
    try:
        return name, json.loads({"true": "true", "false": "false", "none": "null"}.get(value.lower(), value))
    except json.JSONDecodeError:
        return name, value


def fitted(model: Any, source: Source, w: np.ndarray | None) -> Any:
    """The model, fitted. Ctrl-C ends a fit early with what it has; on the command line it ends the command."""
    model.fit(source, sample_weight=w)
    if model.result_ == "stopped":
        raise KeyboardInterrupt
    return model


def how_it_went(model: Any) -> str:
    """How a fit ended, in words."""
    steps = len(model.trace_) + sum(len(stage.trace) for stage in model.stages_)
    ends = {
        "converged": "converged",
        "solved": "solved",
        "max_iter": "ended at its last step",
        "nonfinite": "ended early, at numbers out of range",
    }
    took = f" after {plural(steps, 'step')}" if steps else " in closed form"
    return f"{ends.get(model.result_, model.result_)}{took}"


def show(model: Any, source: Source, w: np.ndarray | None, say: Session) -> None:
    """Print what a fit found, and give it to machines."""
    how = model.result_
    if not isinstance(model, (Groups, Components)):
        say.show(f"{type(model).__name__} {how_it_went(model)}")
        return
    found = explain(model, source, w)
    say.show(f"{headline(found)} ({type(model).__name__}, {how_it_went(model)})")
    say.show("")
    say.show(found)
    say.give(**found.to_dict(), result=how)


def headline(found: FoundGroups | FoundComponents) -> str:
    """What was found, in a few words."""
    if isinstance(found, FoundGroups):
        return f"{plural(len(found.groups), 'group')} in {plural(found.n, 'row')}"
    text = plural(len(found.components), "component")
    if found.explained is None:
        return text
    return f"{text}, {100 * found.explained:.0f}% of the variance"


def result_names(model: Any) -> list[str]:
    """Names of the columns that a model gives for each row."""
    if isinstance(model, unmix.OutlierDetector):
        return ["p_value", "odd"]
    if isinstance(model, Groups):
        return ["group", "probability"] if isinstance(model, Memberships) else ["group"]
    return [f"component {i + 1}" for i in range(len(model.get_feature_names_out()))]


def results(model: Any, source: Source) -> Iterator[list[np.ndarray]]:
    """These columns, block by block: groups are numbered from 1 on."""
    if isinstance(model, unmix.OutlierDetector):
        p = model.p_values(source)
        yield [p, model.predict(source) < 0]
        return
    groups, shares = isinstance(model, Groups), isinstance(model, Memberships)
    for z in model.stream("assign" if groups and not shares else "encode", source):
        if shares:
            yield [z.argmax(axis=1) + 1, z.max(axis=1)]
        else:
            yield [np.asarray(z) + 1] if groups else list(np.asarray(z).T)
