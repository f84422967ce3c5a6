"""What the papers say against what was seen, and the pictures of it."""
import re
from collections.abc import Sequence

import charts
from experiments import Claim, Outcome
from report import Table


def claims_table(outcomes: Sequence[Outcome], others: Sequence[Claim]) -> Table:
    rows = [claim_row(outcome, claim) for outcome in outcomes for claim in outcome.experiment.claims]
    rows += [(claim.paper, claim.where, claim.says, "-", "not testable here", claim.why_not) for claim in others]
    return ("paper", "where", "what it says", "data set", "here", "seen"), sorted(rows)


def claim_row(outcome: Outcome, claim: Claim) -> tuple[str, ...]:
    about = claim.paper, claim.where, claim.says, outcome.data_set
    wanted = [name for method in claim.programs for name in method]
    absent = [outcome.missing.get(name, f"{name} did not run") for name in wanted if name not in outcome.runs]
    if absent:
        return *about, "not testable here", absent[0]
    agrees, seen = claim.judge(*([outcome.runs[name][0] for name in method] for method in claim.programs))
    return *about, "agrees" if agrees else "differs", seen if agrees or not claim.if_not else f"{seen}: {claim.if_not}"


def pictures(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """SVG by the name of its file."""
    found = {}
    for outcome in outcomes:
        for figure in outcome.experiment.figures:
            runs = {line: [outcome.runs[name][0] for name in names if name in outcome.runs] for line, names in figure.lines.items()}
            everything = [run for several in runs.values() for run in several]
            lines = {line: [(figure.across[1](run, everything), figure.upward[1](run, everything)) for run in several]
                     for line, several in runs.items() if several}
            if lines:
                name = f"{outcome.experiment.name} {figure.name} {outcome.data_set}".lower()
                title = f"{figure.name}: {outcome.data_set}"
                found[re.sub(r"[^a-z0-9]+", "-", name) + ".svg"] = charts.chart(title, figure.across[0], figure.upward[0], lines)
    return found
