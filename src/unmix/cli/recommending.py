"""Ratings from a file, a recommender for them, and what it says."""

from __future__ import annotations

from typing import Any

import numpy as np

import unmix
from unmix.cli.session import Session
from unmix.explanation.words import percent, plural, table
from unmix.io.write import write_tables
from unmix.recommend import evaluate, split
from unmix.recommend.pmf import PMF
from unmix.recommend.ratings import ids, places
from unmix.table import TableError
from unmix.table.read import read

CALLED = {  # how columns are called that hold users, items and ratings
    "user": ("user", "userid", "customer", "customerid", "reader", "viewer", "member", "who"),
    "item": ("item", "itemid", "movie", "movieid", "film", "product", "productid", "book", "isbn", "track", "what"),
    "rating": ("rating", "ratings", "stars", "score", "value", "grade", "points"),
}
HIDDEN = 0.1  # of the ratings, to see how far off predictions are
FEWEST = 50  # ratings of which some can be hidden


def read_ratings(path: str, names: str | None, header: bool | None, say: Session) -> Any:
    """A table of user, item and rating, as Arrow has it."""
    raw = read(path, header=header)
    for note in raw.notes:
        say.note(note)
    chosen = asked(names, raw.names) if names else guessed(raw)
    found = raw.slice(0, raw.n, chosen).rename_columns(["user", "item", "rating"])
    gone = np.zeros(found.num_rows, bool)
    for column in found.columns:
        gone |= column.is_null().to_numpy()
    if gone.any():
        say.note(f"{plural(int(gone.sum()), 'line')} without a user, an item or a rating left out")
        found = found.filter(~gone)
    if not found.num_rows:
        raise TableError(f"{path!r} holds no rating: give a line for each, with user, item and rating")
    return once(found, say)


def asked(names: str, known: list[str]) -> list[str]:
    """The columns that the user names."""
    chosen = [name.strip() for name in names.split(",")]
    if len(chosen) != 3 or len(set(chosen)) < 3:
        raise TableError(f"--names {names!r}: give three names, as in --names customer,book,stars")
    for name in chosen:
        if name not in known:
            raise TableError(f"--names: there is no column {name!r}; there are {', '.join(known[:8])}")
    return chosen


def guessed(raw: Any) -> list[str]:
    """The columns by what they are called, or the first three of a file without names."""
    plain = {"".join(ch for ch in name.lower() if ch.isalnum()): name for name in raw.names}
    found = [next((plain[name] for name in called if name in plain), None) for called in CALLED.values()]
    if None not in found:
        return found  # type: ignore[return-value]
    if not raw.headed and len(raw.names) >= 3:
        return list(raw.names[:3])
    lacking = [what for what, name in zip(CALLED, found, strict=True) if name is None]
    raise TableError(
        f"which column holds the {lacking[0]}? There are {', '.join(raw.names[:8])}: say --names USER,ITEM,RATING"
    )


def once(found: Any, say: Session) -> Any:
    """Of users that rated an item more than once the last rating."""
    import pyarrow as pa

    at = found.append_column("at", pa.array(np.arange(found.num_rows)))
    last = at.group_by(["user", "item"]).aggregate([("at", "max")])
    if last.num_rows == found.num_rows:
        return found
    say.note(f"{plural(found.num_rows - last.num_rows, 'rating')} of an item rated again by the same user left out")
    return found.take(pa.array(np.sort(last["at_max"].to_numpy())))


def fitted(ratings: Any, components: int, check: bool, seed: int, say: Session) -> PMF:
    """A recommender of these ratings; how far off it is, by some that are hidden at first."""
    if check and ratings.num_rows >= FEWEST:
        train, test = split(ratings, "random", test=HIDDEN, random_state=seed)
        own = evaluate(PMF(components, random_state=seed).fit(train), test)
        plain = evaluate(PMF(0, random_state=seed).fit(train), test)
        say.give(checked=own._asdict(), biases_alone=plain._asdict())
        say.show(
            f"a hidden rating is off by {own.rmse:.3f} (root mean square; by what users and items get on average "
            f"alone {plain.rmse:.3f}); 90% intervals held {percent(own.coverage)} of {own.n:,}"
        )
        if components and own.rmse >= plain.rmse:
            say.note("factors do not predict better than averages of users and items do: --components 0 is as good")
    model = PMF(components, random_state=seed).fit(ratings)
    say.give(ratings=ratings.num_rows, users=model.known_users, items=model.n_features_in_)
    return model


def saved(path: str) -> PMF:
    """A recommender that was kept in a file."""
    model = unmix.load(path)
    if not isinstance(model, PMF):
        raise TableError(
            f"{path!r} holds a {type(model).__name__}, which recommends nothing: give one of unmix recommend"
        )
    return model


def places_of(model: PMF, users: tuple[str, ...]) -> list[Any]:
    """Users as the model calls them: those that are numbers come as text."""
    return [int(u) if number(u, model.user_ids_) else u for u in users]


def users_of(ratings: Any) -> np.ndarray:
    """Who rated anything."""
    return np.unique(ids(ratings["user"].to_numpy(), "user"))


def check_users(users: tuple[str, ...], known: Any, n: int, file: str) -> None:
    """Refuse users of whom there is no rating."""
    for user in users:
        if places([int(user) if number(user, known) else user], known, n)[0] == n:
            first = 0 if known is None else known[0]
            raise TableError(
                f"--user {user}: there is no rating of this user in {file}. Write users as the file does: the first of "
                f"its {n:,} is {first}. For somebody new, add lines with their ratings to the file of ratings, and run "
                "unmix recommend on that"
            )


def number(user: str, known: Any) -> bool:
    """Whether a user is called by a whole number."""
    return (known is None or known.dtype.kind == "i") and user.lstrip("-").isdigit()


def show(model: PMF, users: tuple[str, ...], how: dict[str, Any], say: Session) -> None:
    """The lists of single users."""
    lists = []
    for user in places_of(model, users):
        found = model.recommend(user, **how)
        say.show("")
        rows = [[str(r.item), f"{r.rating:.2f}", f"± {r.std:.2f}"] for r in found]
        say.show(table([f"for {user}", "rating", "deviation"], rows))
        lists.append({"user": user, "items": [r._asdict() for r in found]})
    say.give(recommended=lists)


def written(model: PMF, users: tuple[str, ...], how: dict[str, Any], say: Session) -> None:
    """The lists of many users in a file."""
    if say.ask.out is None:
        return
    import sys

    import pyarrow as pa

    lines = [
        (user, rank + 1, r.item, r.rating, r.std)
        for user, found in model.recommend_many(places_of(model, users) or None, **how)
        for rank, r in enumerate(found)
    ]
    names = "user", "rank", "item", "rating", "std"
    found = pa.table({name: [line[i] for line in lines] for i, name in enumerate(names)})
    if say.piped:
        write_tables(sys.stdout.buffer, [found])
    else:
        write_tables(say.ask.out, [found], replace=say.ask.force)
    say.give(out={"file": say.ask.out, "rows": len(lines)})
    say.hint(f"{plural(len(lines), 'row')} written to {'standard output' if say.piped else say.ask.out}")


def keep(model: PMF, say: Session) -> None:
    """The model in a file, where the user wants it."""
    if say.ask.save is not None:
        model.save(say.ask.save)
        say.give(save=say.ask.save)
        say.hint(f"model and ratings kept in {say.ask.save}:  unmix recommend {say.ask.save} --user ID")
