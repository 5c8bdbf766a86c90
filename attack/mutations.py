"""Files as an enemy or a bad disk would leave them: from bytes of a file of ours to bytes that are wrong somewhere."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from attack.wrong_arrays import array, entries_of, header, pick, zipped

WRONG: list[Any] = [
    None, True, False, -1, 0, 1, 3, 10**6, 2**31, 2**63, -(2**70), 1e308, -1.5, 5e-324, float("nan"), float("inf"), "",
    "x", "unmix.engine.layout:Shape", "os:system", "unmix.nowhere:Parts", [], [[]], {}, {"!": "array", "of": 0},
    {"!": "tuple", "of": [], "as": None}, {"!": "dict", "of": {}}, {"!": "strings", "of": [1]},
    {"!": "dtype", "of": "O"}, {"!": "csr", "of": [[1.0], [9], [0, 1]], "shape": [1, 2]}, {"!": "evil", "of": 0},
]  # fmt: skip


# -- bytes --


def bits(data: bytes, rng: np.random.Generator) -> bytes:
    """Some bits are turned."""
    a = np.frombuffer(data, np.uint8).copy()
    for _ in range(1 + rng.integers(4)):
        a[rng.integers(len(a))] ^= 1 << rng.integers(8)
    return a.tobytes()


def cut(data: bytes, rng: np.random.Generator) -> bytes:
    """It ends early, or begins late, or goes on."""
    i = int(rng.integers(len(data)))
    return pick(rng, [data[:i], data[i:], data + data[:i], data + bytes(i % 999 + 1), b""])


def splice(data: bytes, rng: np.random.Generator) -> bytes:
    """A piece is lost, doubled, zeroed or written over another."""
    i, j, n = (int(v) for v in (*rng.integers(len(data), size=2), rng.integers(1, 400)))
    piece = pick(rng, [b"", data[i : i + n] * 2, bytes(n), data[j : j + n]])
    return data[:i] + piece + data[i + n :]


# -- the zip --


def directory(data: bytes, rng: np.random.Generator) -> bytes:
    """What the zip says of its entries: sizes, flags, methods, offsets, counts."""
    a, marks = bytearray(data), [b"PK\3\4", b"PK\1\2", b"PK\5\6"]
    at = [i for mark in marks for i in places(data, mark)]
    i = pick(rng, at) + int(rng.integers(4, 46))
    a[i : i + 4] = pick(rng, [b"\xff" * 4, bytes(4), b"\1\0\0\0", rng.bytes(4), b"\x08\0", b"\xff\xff\xff\x7f"])
    return bytes(a)


def places(data: bytes, mark: bytes) -> Iterator[int]:
    """Where a mark stands."""
    i = data.find(mark)
    while i >= 0:
        yield i
        i = data.find(mark, i + 1)


def members(data: bytes, rng: np.random.Generator) -> bytes:
    """An entry is compressed (perhaps a bomb), lost, renamed, or exchanged with another."""
    entries = entries_of(data)
    names = list(entries)
    one, other = pick(rng, names), pick(rng, names)
    how = rng.integers(6)
    if how == 0:
        return zipped(entries, deflate=one)
    if how == 1:
        return zipped(entries | {one: entries[one][:128] + bytes(1 << 26)}, deflate=one)
    if how == 2:
        return zipped({n: d for n, d in entries.items() if n != one})
    if how == 3:
        return zipped({(pick(rng, ["../x", "a/", "9.npy", "content.json ", "0.npy"]) if n == one else n): d
                       for n, d in entries.items()})  # fmt: skip
    if how == 4:
        return zipped(dict(sorted(entries.items(), key=lambda _: rng.random())))
    return zipped(entries | {one: entries[other], other: entries[one]})


# -- the text --


def nodes(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in a tree."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*at, key)
        yield from nodes(inner, (*at, key))


def text(data: bytes, rng: np.random.Generator) -> bytes:
    """A value in the text is another, is gone, or is exchanged with another."""
    entries = entries_of(data)
    content = json.loads(entries["content.json"])
    ways = list(nodes(content))
    for _ in range(1 + int(rng.integers(2))):
        change(content, pick(rng, ways), pick(rng, ways), rng)
    written = json.dumps(content)
    if rng.random() < 0.02:
        deep = ["[" * 100_000, "[" * 2000 + "]" * 2000, '{"a":' * 3000]
        many = ["[" + "[0]," * n + "0]" for n in (100_000, 160_000, 10**6)]  # some just within what a text may take
        written = pick(rng, [*deep, *many, written[:-5]])
    return zipped(entries | {"content.json": written.encode()})


def change(content: Any, way: tuple[Any, ...], other: tuple[Any, ...], rng: np.random.Generator) -> None:
    """Change one value in place, where the way still leads to one."""
    try:
        owner, source = content, content
        for key in way[:-1]:
            owner = owner[key]
        for key in other:
            source = source[key]
        how = rng.random()
        if how < 0.15:
            del owner[way[-1]]
        elif how < 0.3:
            owner[way[-1]] = copy.deepcopy(source)
        elif how < 0.4 and isinstance(owner, list):
            owner.append(copy.deepcopy(owner[way[-1]]))
        else:
            owner[way[-1]] = copy.deepcopy(pick(rng, WRONG))
    except (KeyError, IndexError, TypeError):
        return


KINDS: dict[str, Callable[[bytes, np.random.Generator], bytes]] = {
    f.__name__: f for f in (bits, cut, splice, directory, members, header, array, text)
}
WEIGHTS = np.array([1, 1, 1, 1, 1, 2, 4, 5]) / 16


def wrong_values(entries: dict[str, bytes]) -> Iterator[dict[str, bytes]]:
    """The entries of a file once for each value of its text but those of traces, with a wrong one in its place."""
    ways = [w for w in nodes(json.loads(entries["content.json"])) if "trace_" not in w and "stages_" not in w]
    for i, way in enumerate(ways):
        content = owner = json.loads(entries["content.json"])
        for key in way[:-1]:
            owner = owner[key]
        owner[way[-1]] = WRONG[i % len(WRONG)]
        yield entries | {"content.json": json.dumps(content).encode()}
