"""What mkdocs cannot say in its settings: the folder of reproductions as a part of the navigation, and the codes of
`elute explain` as a page, so that neither is written down twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from elute.results.explanations import EXPLANATIONS

_FOLDER = "reproductions"
_VERBS = {
    "check": "warnings",
    "watch": "alarms",
    "audit": "findings on assumptions",
    "judge": "withheld from judgments, left out of bundles",
    "convert": "left out of a log",
}


def on_config(config: Any) -> Any:
    """Put the pages that are there in the place of the folder's name."""
    pages = sorted(path.name for path in Path(config.docs_dir, _FOLDER).glob("*.md") if path.name != "README.md")
    listed = [
        {"Overview": f"{_FOLDER}/README.md"},
        {"Pages": [{Path(page).stem: f"{_FOLDER}/{page}"} for page in pages]},
    ]
    config.nav = [{title: listed if at == _FOLDER else at for title, at in entry.items()} for entry in config.nav]
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill the page of codes."""
    return markdown + "\n" + _codes() if page.file.src_uri == "codes.md" else markdown


def _codes() -> str:
    parts = []
    for verb, title in _VERBS.items():
        parts.append(f"## `elute {verb}`: {title}")
        for code, entry in EXPLANATIONS.items():
            if entry.verb.split()[0] == verb:
                parts += [f"### `{code}`", f"{entry.meaning} {entry.why}", f"**What to do.** {entry.do}"]
                parts.append(f"```sh\n{entry.example}\n```")
    return "\n\n".join(parts)
