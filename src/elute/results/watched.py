"""What the alarms of `elute watch` mean: by code, the meaning, why it matters, what to do."""

from __future__ import annotations

ALARMS: dict[str, tuple[str, str, str]] = {
    "traffic": (
        "A period has more or fewer impressions than those before it let expect, the day of the week included.",
        "An hour that was not loaded, a lost client or a bot look like this; so does a holiday. Counts of the "
        "period are then of other users than before.",
        "Compare the rows with those at the source, hour by hour. If some are missing, export the period again "
        "and append it under its key, which replaces it. If the traffic is right, nothing: the baseline adapts.",
    ),
    "click_rate": (
        "The same items, at the same places, are clicked more or less often than in the baseline.",
        "Clicks that are lost or counted twice look like this, and so does a change of the page or of the users. "
        "Relevance estimated over the change is a mixture.",
        "Look for a release of the page or of its tracking on that day. If clicks are lost, repair and append the"
        " period again. If it is meant to be so, fit from that day on: 'elute fit DIR --drop \"day < ...\"'.",
    ),
    "curve": (
        "Propensities have changed: some positions gained or lost clicks beside the others, at the same items.",
        "A fit over both sides of the change is of neither, and debiasing by yesterday's propensities is wrong today.",
        "If the page was changed, drop the parts before it and fit again: 'elute fit DIR --drop \"day < ...\"'. If "
        "it was not, look at how clicks of the positions named are tracked.",
    ),
    "links": (
        "Fewer items than in the baseline were shown in more than one place within the period, or none at all.",
        "Such items are what ties propensities together. Without them the log falls apart once the older parts "
        "leave the window, and relevance can no longer be told from position.",
        "See whether an experiment or a shuffle of results has ended, or a layout now pins its results. 'elute "
        "repair DIR --last 1 --method swap' says which items to swap.",
    ),
    "doubled": (
        "Far more cells than in the baseline have even impressions and even clicks.",
        "Rows that are loaded twice make all counts even. They make error bars too small, and a period weigh double.",
        "Load the period once, and append it again under its key, which replaces it.",
    ),
    "no_clicks": (
        "A position has impressions and not one click, where the baseline lets clicks expect.",
        "Users do not stop clicking overnight: most likely its clicks are no longer tracked. A fit would take the"
        " position for unseen.",
        "Repair the tracking of that position. Leave out what lacks them meanwhile: '--drop \"day >= ...\"'.",
    ),
    "missing_parts": (
        "There are fewer parts than the sequence of keys lets expect: a period is missing, or parts of one are.",
        "A job did not run, or did not end. What is missing is of certain hours or days, so that the rest is no "
        "fair picture.",
        "Run the job for the parts that are missing: they may be appended in any order.",
    ),
    "vanished_factors": (
        "Positions, or other combinations of bias values, that the baseline has all the time are not in the period.",
        "Results there are no longer shown, or their rows are lost on the way.",
        "If the page was shortened, nothing. Else look for a filter in the export.",
    ),
    "new_factors": (
        "Bias values that no part of the baseline has, with at least 1% of the period's impressions.",
        "A new layout has propensities of its own. If no item is shown both there and elsewhere, nothing links "
        "them to the others, and the log falls apart.",
        "If the values are misspelt, repair the export. If it is a new layout, run 'elute check DIR' and, where "
        "it falls apart, 'elute repair DIR --method swap'.",
    ),
    "dropped_rows": (
        "Far more rows than in the baseline have no id or no impression, and were left out.",
        "If they are of one client or one kind of result, what is left is no fair picture of what users saw.",
        "See which column is null ('elute check DIR --last 1'), repair the export, and append the period again.",
    ),
    "repeated_rows": (
        "Far more rows than in the baseline repeat an item on one result page.",
        "Rows that were exported twice count twice.",
        "Remove duplicates from the export, and append the period again under its key.",
    ),
    "new_items": (
        "Far fewer impressions than in the baseline are of items that other parts have.",
        "Ids that have changed (another hash, another catalogue) look like this: no item is then found again, and"
        " nothing learnt before applies.",
        "Compare some ids with those of the day before. If they were changed on purpose, start a new folder.",
    ),
}
