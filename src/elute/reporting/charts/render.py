"""A Vega-Lite spec as a picture, without a browser and without the network."""

from __future__ import annotations

from typing import Any

from elute.errors import MissingExtra


def render_svg(spec: dict[str, Any]) -> str:
    """The chart as SVG text."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("a picture", "vl-convert-python", "report") from None
    return str(vl_convert.vegalite_to_svg(spec))
