"""What the pages of the CMIP paper's reproductions share."""

from __future__ import annotations

from collections.abc import Sequence

from elute_reproduce.cmip.grid import FILE, FitGrid
from elute_reproduce.cmip.world import LONG, SHORT

SOURCE = "Deffayet, Hager, Renders, de Rijke: An Offline Metric for the Debiasedness of Click Models (SIGIR 2023)"


def describe_settings(grid: FitGrid) -> list[str]:
    """How the grid was made, a sentence each."""
    short, long = (grid.graded.lists[k] for k in (SHORT, LONG))
    sizes = grid.sizes
    lines = [
        f"Data: {grid.graded.name}, {short.n_queries:,} queries × {SHORT} documents ({long.n_queries:,} × {LONG} for "
        "the Carousel), a stratified sample of each query's.",
        f"Sessions a query as in the paper: {sizes.train} to train on, {sizes.validation} to stop early by, "
        f"{sizes.test} to test on, so {sizes.train * short.n_queries:,} to train on in all; {grid.seeds} runs, each "
        "with its own sessions and oracle noise.",
        "DCTR, RDCTR, PBM, UBM and DBN are fitted at their maximum (counts, EM) with a fitted Beta prior; NCM and "
        f"CACM by Adam, rate {sizes.rate}, batches of {sizes.batch}, at most {sizes.epochs} epochs, patience "
        f"{sizes.patience}.",
        f"Perplexity is Eq. 3 with P(click) as in Eq. 2, whatever else is clicked; on {sizes.pages} test pages a query "
        "and in expectation over clicks. CMIP by elute's default estimator.",
        f"The fits are kept in `{FILE.name}` beside the pages and shared by the four; they are made anew when data or "
        "settings change.",
    ]
    if not grid.graded.is_papers:
        lines.insert(
            1,
            "This is not the paper's set, so published values are quoted, not tested. With few queries LambdaMART is "
            "cross-fitted (it would know its training queries by heart), and training takes more and larger steps.",
        )
    return lines


def describe_choices() -> str:
    """Where text and code part."""
    return (
        "Where the paper's public code differs from its text: the users (DBN attraction max(y/4, .1) and satisfaction "
        "y/8; MixtureDBN with noisy attraction; Carousel of two rows that are both read, clicks thinned by the row's "
        "bias), oracle noise of standard deviation 0.5 instead of variance 0.5, test rankings at temperature 0 (one "
        "page a query), perplexity given the clicks above, CMIP against the policy's raw score instead of the expected "
        "rank. The rows above change one at a time, the last all."
    )


def format_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
