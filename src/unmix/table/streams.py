"""The bytes of a text file as UTF-8, whatever they are packed and encoded in: opened anew for every look at them."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import zipfile
import zlib
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np
import pyarrow as pa

from unmix.table.errors import TableError, forbidden, told_by

HEAD = 1 << 20  # bytes that a file is told by
PIECE = 1 << 18  # bytes of a look into the middle or at the end
CHUNK = 1 << 20  # bytes that are made UTF-8 at a time
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz"}
BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile, OSError, pa.ArrowInvalid)
MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
TAB, NEWLINE, RETURN, BLANK = 9, 10, 13, 32


def packing(head: bytes) -> str:
    """What a file is packed with, by its first bytes."""
    return next((name for magic, name in PACKED.items() if head.startswith(magic)), "")


class NotUtf8(Exception):  # noqa: N818
    """The file is not UTF-8, as its beginning was."""


@dataclass(frozen=True)
class Text:
    """A text file: where it is, what it is packed and encoded in, and where its table begins."""

    path: str
    name: str  # what people call it
    packed: str = ""
    member: str = ""  # of a zip archive
    encoding: str = "utf-8"
    begin: int = 0  # bytes before the text: a mark that says its encoding
    skip: int = 0  # bytes of UTF-8 before the rows
    squeeze: bool = False  # runs of blanks become one tab

    def raw(self) -> IO[bytes]:
        """The bytes, unpacked."""
        try:
            if self.packed == "zip":
                return unzipped(self)
            if self.packed == "zstd":
                return pa.CompressedInputStream(pa.OSFile(self.path), "zstd")  # type: ignore[no-any-return]
            known = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}
            return known.get(self.packed, open)(self.path, "rb")  # type: ignore[operator,no-any-return]
        except PermissionError:
            raise forbidden(self.name) from None

    def open(self) -> Any:
        """The rows as UTF-8, to be read by PyArrow."""
        f = self.raw()
        if self.plain:
            f.seek(self.begin + self.skip)
            return Stream(self, f)
        f.read(self.begin)
        stream = Stream(self, f)
        stream.skip(self.skip)
        return stream

    @property
    def plain(self) -> bool:
        """Whether the bytes of the file are those of the text."""
        return self.encoding == "utf-8" and not self.squeeze and not self.packed

    def head(self, size: int = HEAD) -> bytes:
        """The first bytes of the text as UTF-8."""
        with self.open() as f:
            return f.read(size)  # type: ignore[no-any-return]

    def tail(self) -> bytes:
        """The last bytes, where they can be reached without reading all; of a packed file all is read."""
        if self.plain:
            with self.raw() as raw:
                raw.seek(max(0, os.path.getsize(self.path) - 1024))
                return raw.read()
        with self.open() as f:
            last = b""
            while piece := f.read(CHUNK):
                last = piece[-1024:]
            return last

    def looks(self) -> list[bytes]:
        """Whole lines from the beginning, the middle and the end, as far as they can be reached without reading all."""
        with self.open() as f:
            head = f.read(HEAD)
            if len(head) < HEAD:
                return [head]
            if not self.plain:
                return [whole(head + f.read(HEAD), False)]
        pieces = [whole(head, False)]
        with self.raw() as raw:
            size = os.path.getsize(self.path)
            for at in (size // 4, size // 2, 3 * size // 4, size - PIECE):
                raw.seek(max(at, self.begin + self.skip + HEAD))
                pieces.append(whole(raw.read(PIECE), True))
        if not all(map(is_utf8, pieces)):
            raise NotUtf8
        return pieces


def is_utf8(piece: bytes) -> bool:
    """Whether bytes are text in UTF-8."""
    try:
        piece.decode()
        return True
    except UnicodeDecodeError:
        return False


def whole(piece: bytes, inside: bool) -> bytes:
    """The whole lines of a piece of text; `inside` says that it may begin in the middle of one."""
    mark = b"\n" if b"\n" in piece else b"\r"
    start = piece.find(mark) + 1 if inside else 0
    end = piece.rfind(mark) + 1
    return piece[start:end] if end > start else b"" if inside else piece


class Stream(io.RawIOBase):
    """A file that is unpacked, made UTF-8 and squeezed while it is read."""

    def __init__(self, text: Text, f: IO[bytes]) -> None:
        self.text, self.f, self.rest = text, f, b""
        strict = text.encoding == "utf-8"
        self.decoder = codecs.getincrementaldecoder(text.encoding)("strict" if strict else "replace")
        self.after = NEWLINE  # the byte before, of text that is squeezed
        self.pending = b""

    def readable(self) -> bool:  # noqa: D102
        return True

    def close(self) -> None:  # noqa: D102
        self.f.close()
        super().close()

    def skip(self, size: int) -> None:
        """Pass over the beginning."""
        while size > 0 and (piece := self.read(min(size, CHUNK))):
            size -= len(piece)

    def read(self, size: int = -1) -> bytes:  # noqa: D102
        parts, have = [self.rest], len(self.rest)
        while (size < 0 or have < size) and (chunk := self._next()) is not None:
            parts.append(chunk)
            have += len(chunk)
        data = b"".join(parts)
        size = len(data) if size < 0 else size
        self.rest = data[size:]
        return data[:size]

    def unpacked(self, size: int) -> bytes:
        """The next bytes as they are in the file."""
        try:
            return self.f.read(size)
        except BROKEN as e:
            how = f"is packed with {self.text.packed} and cannot be unpacked" if self.text.packed else "cannot be read"
            raise TableError(
                f"{self.text.name} {how} to its end ({str(e)[:100]}): it looks truncated or damaged; fetch it again"
            ) from e

    def _next(self) -> bytes | None:
        """The next piece as UTF-8; None at the end."""
        raw = self.unpacked(CHUNK)
        try:
            letters = self.decoder.decode(raw, not raw)
        except UnicodeDecodeError as e:
            raise NotUtf8 from e
        data = raw if self.text.encoding == "utf-8" else letters.encode("utf-8", "replace")
        if self.text.squeeze:
            data = self._squeezed(data, not raw)
        return data if raw or data else None

    def _squeezed(self, data: bytes, last: bool) -> bytes:
        """Runs of blanks as one tab, and none at the ends of lines."""
        data = self.pending + data
        if not last:  # blanks at the end wait for what follows
            kept = len(data.rstrip(b" \t"))
            data, self.pending = data[:kept], data[kept:]
        a = np.frombuffer(data, np.uint8)
        if not len(a):
            return b""
        blank = (a == BLANK) | (a == TAB)
        before = np.concatenate([[self.after], a[:-1]])
        after = np.concatenate([a[1:], [0 if not last else NEWLINE]])
        end = (after == NEWLINE) | (after == RETURN)
        edge = (before == BLANK) | (before == TAB) | (before == NEWLINE) | (before == RETURN)
        self.after = int(a[-1])
        out = np.where(blank, np.uint8(TAB), a)
        out = out[~(blank & edge)]
        # A single blank before the end of a line is left of a run there: it goes, too.
        text = out.tobytes()
        if end[blank].any():
            text = text.replace(b"\t\r", b"\r").replace(b"\t\n", b"\n")
            text = text[:-1] if last and text.endswith(b"\t") else text
        return text


def opened(path: str, name: str) -> Text:
    """A text file with its packing and encoding told by its bytes; an error that names what it is, if it is none."""
    text = Text(path, name)
    with text.raw() as f:
        head = f.read(8)
    kind = "zip" if head.startswith(b"PK\x03\x04") else packing(head)
    if kind:
        text = replace(text, packed=kind, member=only_member(path, name) if kind == "zip" else "")
    with text.raw() as f:
        head = Stream(text, f).unpacked(HEAD)
    told = told_by(head)
    if told is not None:
        raise TableError(f"{name} is {told[0]}, not a table: {told[1]}")
    return encoded(text, head)


def encoded(text: Text, head: bytes) -> Text:
    """The text with its encoding: told by a mark, by where its zeros lie, or by whether it is valid UTF-8."""
    if head[:4] in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
        return replace(text, encoding="utf-32", begin=0)
    for mark, encoding in MARKS:
        if head.startswith(mark):
            return replace(text, encoding=encoding, begin=len(mark))
    zeros = np.frombuffer(head, np.uint8) == 0
    if zeros.any():
        even, odd = zeros[::2].mean(), zeros[1::2].mean() if len(zeros) > 1 else 0.0
        if max(even, odd) > 0.4 and min(even, odd) < 0.05:
            return replace(text, encoding="utf-16-le" if odd > even else "utf-16-be")
        raise TableError(
            f"{text.name} holds bytes of zero, so it is a binary file or a damaged text: give a table as CSV, Excel or "
            "Parquet, or write the file again"
        )
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # which may end in the middle of a letter
        return text
    except UnicodeDecodeError:
        pass
    control = np.isin(np.frombuffer(head, np.uint8), [*range(1, 9), *range(14, 32), 127])
    if control.mean() > 0.02:
        raise TableError(f"{text.name} is a binary file of an unknown kind: give a table as CSV, Excel or Parquet")
    return western(text, head)


def western(text: Text, head: bytes) -> Text:
    """The text as Windows' Western European, or as Latin-1 where that leaves bytes without a meaning."""
    undefined = np.isin(np.frombuffer(head, np.uint8), [0x81, 0x8D, 0x8F, 0x90, 0x9D]).any()
    return replace(text, encoding="latin-1" if undefined else "cp1252")


def unzipped(text: Text) -> IO[bytes]:
    """The file in a zip archive."""
    try:
        return zipfile.ZipFile(text.path).open(text.member)
    except (zipfile.BadZipFile, RuntimeError, KeyError, ValueError) as e:
        raise TableError(
            f"{text.name} is a zip archive that cannot be unpacked ({str(e)[:80]!r}): unpack it, or fetch it again"
        ) from e


def only_member(path: str, name: str) -> str:
    """The one file in a zip archive."""
    try:
        with zipfile.ZipFile(path) as z:
            members = [i.filename for i in z.infolist() if not i.is_dir() and not i.filename.startswith("__MACOSX")]
    except (zipfile.BadZipFile, RuntimeError) as e:
        raise TableError(f"{name} begins as a zip archive but is truncated or damaged ({e}): fetch it again") from e
    if len(members) != 1:
        some = ", ".join(members[:5]) + (" …" if len(members) > 5 else "")
        raise TableError(f"{name} is a zip archive of {len(members)} files ({some}): unpack it and give one of them")
    return members[0]
