"""What a user names, taken for what it is: a file of that name before a pattern, and nothing that is read is written
over."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from elute._util.atomic import is_stream
from elute._util.urls import hide_secrets
from elute.errors import EluteError

_DATABASE = "duckdb://"
_STORE = re.compile(r"s3:/")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # a Path has one stroke left


def require_name(path: str | Path) -> None:
    """Refuse what names nothing, or cannot be written down."""
    name = str(path)
    if not name.strip():
        raise EluteError("a name is empty; name a file or a folder ('.' is the one you are in)")
    if "\0" in name:
        raise EluteError(f"no file can be called {name!r}")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise EluteError(f"the name {name!r} is not UTF-8; rename the file, or name it through a link") from None


def require_names(source: object) -> None:
    """`require_name`, of what is or has paths; anything else may be a table."""
    for path in source if isinstance(source, list | tuple) else [source]:
        if isinstance(path, str | Path):
            require_name(path)


def find_matches(path: str | Path) -> list[str]:
    """What a path stands for: itself where it is there, else what matches it as a pattern, in a fixed order."""
    require_name(path)
    found = [str(path)] if Path(path).exists() else sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 (absolute patterns too)
    for match in found:
        require_name(match)
    return found


def is_hidden(path: Path, folder: Path) -> bool:
    """Whether a file below a folder is one that readers of folders leave out, as Spark and Arrow do: it, or a folder
    above it, has a name that begins with a dot or an underscore. What is written stands under such names."""
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def refuse_harm(
    out: str | Path | None, inputs: Iterable[object], option: str = "out", folder: bool = False, stores: bool = False
) -> None:
    """Refuse to write where something would be destroyed that is read: over an input, into an input that is a folder,
    or, where a `folder` of several files is written, into one with an input in it. And to an address, unless the verb
    writes to object `stores` and it is one of these.

    `inputs`: whatever the user named to be read; what is no path is passed over. Links are followed.
    """
    if out is None:
        return
    require_name(out)
    if _ADDRESS.match(str(out)):
        shown = hide_secrets(str(out))
        if stores and _STORE.match(str(out)):
            _refuse_overlap(str(out), inputs, option)
            return
        raise EluteError(f"`{option}=`: '{shown}' is an address; write to disk, and copy it from there")
    if is_stream(Path(out)):
        return
    target = Path(os.path.realpath(out))
    for named, place in _list_places(inputs):
        if target == place or _is_same_file(target, place):
            harm = f"is read as '{named}' too"
        elif place in target.parents:
            harm = f"lies in '{named}', which is read"
        elif folder and place.parent == target:
            harm = f"has '{named}' in it, which is read"
        else:
            continue
        raise EluteError(f"`{option}=`: '{out}' {harm}, and would be written over; write to another place")


def _refuse_overlap(out: str, inputs: Iterable[object], option: str) -> None:
    """Refuse an address in which, or in a folder of which, something lies that is read."""
    target = f"{_STORE.sub('', out).strip('/')}/"
    for given in inputs:
        for one in given if isinstance(given, list | tuple) else [given]:
            place = f"{_STORE.sub('', str(one)).strip('/')}/"
            if isinstance(one, str) and _STORE.match(one) and (place.startswith(target) or target.startswith(place)):
                shown = hide_secrets(out)
                raise EluteError(f"`{option}=`: '{shown}' overlaps with what is read; write to another place")


def refuse_same(out: str | Path, others: Mapping[str, str | Path], option: str) -> None:
    """Refuse to write two results to one place. `others`: by option, what else is written."""
    for other, path in others.items():
        if not is_stream(Path(out)) and os.path.realpath(out) == os.path.realpath(path):
            raise EluteError(f"`{option}=` and `{other}=` both write to '{out}'; name two places")


def _list_places(inputs: Iterable[object]) -> Iterator[tuple[str, Path]]:
    for given in inputs:
        if isinstance(given, list | tuple):
            yield from _list_places(given)
        elif isinstance(given, str | Path):
            name = str(given)
            if name.startswith(_DATABASE):
                name = name.removeprefix(_DATABASE).partition("#")[0]
            for match in [] if "://" in name else find_matches(name):
                yield name, Path(os.path.realpath(match))


def _is_same_file(one: Path, two: Path) -> bool:
    """Also by another name, as on disks that do not tell capitals from small letters."""
    try:
        return one.samefile(two)
    except OSError:
        return False
