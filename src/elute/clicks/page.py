"""Sessions on the device, in pieces of one shape, so that everything is compiled once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from elute.clicks.backend import jnp
from elute.clicks.sessions import Sessions

if TYPE_CHECKING:
    import jax

_SMALLEST, _LARGEST = 256, 8192
"""Sessions in one piece, when a whole set is gone through: few shapes, so that little is compiled."""


class DevicePages(NamedTuple):
    """`Sessions` as device arrays. `row` numbers the sessions, so that what is drawn for one depends on no other."""

    row: jax.Array
    query: jax.Array
    doc: jax.Array
    click: jax.Array
    length: jax.Array

    @property
    def mask(self) -> jax.Array:
        """True where a document is shown."""
        return jnp.arange(self.doc.shape[1]) < self.length[:, None]

    @property
    def clicked(self) -> jax.Array:
        """Clicks as booleans, false on the padding."""
        return (self.click != 0) & self.mask


def to_device_pages(sessions: Sessions) -> DevicePages:
    """All sessions in one piece."""
    rows = np.arange(len(sessions), dtype=np.int32)
    return DevicePages(*map(jnp.asarray, (rows, sessions.query, sessions.doc, sessions.click, sessions.length)))


def split_pages(sessions: Sessions, largest: int = _LARGEST) -> Iterator[tuple[slice, DevicePages]]:
    """Which sessions, and these as pages; the last piece is filled up with sessions without documents."""
    size = min(largest, max(_SMALLEST, 1 << max(len(sessions) - 1, 0).bit_length()))
    for start in range(0, len(sessions), size):
        where = slice(start, min(start + size, len(sessions)))
        part, lacking = sessions.take(where), size - (where.stop - start)
        rows = np.arange(start, start + size, dtype=np.int32)
        filled = (
            np.pad(values, [(0, lacking)] + [(0, 0)] * (values.ndim - 1))
            for values in (part.query, part.doc, part.click, part.length)
        )
        yield where, DevicePages(*map(jnp.asarray, (rows, *filled)))
