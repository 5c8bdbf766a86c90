"""The page of benchmarks, from the figures that the last whole run left: what was asked, and where others are ahead."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
COLUMNS = {"native": "as measured", "avx2": "AVX2 alone"}
IMPORTS = "startup-import"  # the time until one model can be used, here and there


def reports():
    """Column → its cases."""
    return {
        name: run["reports"] for name, run in json.loads((ROOT / "benchmarks" / "results.json").read_text()).items()
    }


def rivals(report):
    """(Name, time over ours, memory over ours) of others who reached the quality that was asked."""
    if "time / ours" not in report["head"] or report["name"] == IMPORTS:
        return []
    at = {
        name: report["head"].index(name)
        for name in ("time / ours", "memory / ours", "reached")
        if name in report["head"]
    }
    out = []
    for row in report["rows"]:
        if row[0].startswith("unmix") or (not row[at.get("reached", 0)].startswith("yes") and "reached" in at):
            continue
        out.append(
            (
                row[0],
                number(row[at["time / ours"]]),
                number(row[at["memory / ours"]]) if "memory / ours" in at else None,
            )
        )
    return out


def number(text):
    """What a cell says, or None."""
    try:
        return float(text)
    except ValueError:
        return None


def behind():
    """(Case, who) in which somebody was faster or smaller than we are → column → by how much."""
    out = {}
    for column, cases in reports().items():
        for case in cases:
            for name, time, memory in rivals(case):
                said = [f"{1 / time:.2f}× faster"] if time is not None and time < 1 else []
                share = "less than 0.01" if memory is not None and memory < 0.01 else f"{memory or 0:.2f}"
                said += [f"{share} of our memory"] if memory is not None and memory < 1 else []
                if said:
                    out.setdefault((case["title"], name), {})[column] = ", ".join(said)
            for job, ratio in small(case):
                if ratio > 1.005:
                    out.setdefault((job, "scikit-learn"), {})[column] = f"{ratio:.2f}× faster"
    return out


def small(case):
    """(Job, our time over scikit-learn's) of jobs too short for a line of their own."""
    if case["name"] == "small":
        return [(row[0], float(row[3])) for row in case["rows"]]
    if case["name"] == IMPORTS:
        seconds = {row[0]: float(row[1]) for row in case["rows"]}
        theirs = "from sklearn.cluster import KMeans"
        return [(f"`{theirs}`, in a fresh process", seconds["from unmix import KMeans"] / seconds[theirs])]
    return []


def best():
    """Case → column → (fastest rival who reached the quality, its time over ours)."""
    out = {}
    for column, cases in reports().items():
        for case in cases:
            timed = [(time, name) for name, time, _ in rivals(case) if time is not None]
            if timed:
                out.setdefault(case["title"], {})[column] = min(timed)
    return out


def picture(folder):
    """A dot for each case and column, the fastest rival's time over ours in a logarithmic scale."""
    import matplotlib.pyplot as plt

    cases = sorted(best().items(), key=lambda item: min(v[0] for v in item[1].values()))
    fig, ax = plt.subplots(figsize=(9, 0.27 * len(cases) + 1), layout="constrained")
    for y, (_, found) in enumerate(cases):
        for column, (ratio, _) in found.items():
            first = column == "native"
            mark, size, fill = ("o", 7, "#0072b2") if first else ("D", 5, "white")
            ax.plot(ratio, y, mark, ms=size, mfc=fill, mec="#0072b2")
        rival, at = found.get("native", found[min(found)])[1], ax.get_yaxis_transform()
        ax.text(1.02, y, rival, transform=at, va="center", fontsize=8, color="0.35")
    ax.axvline(1, color="black", lw=1)
    ax.set(xscale="log", yticks=range(len(cases)), ylim=(-0.8, len(cases) - 0.2))
    ax.set_yticklabels([title if len(title) < 72 else title[:71] + "…" for title, _ in cases], fontsize=8)
    ax.set_xticks([0.5, 1, 2, 5, 10, 20, 50, 100], ["½", "1", "2", "5", "10", "20", "50", "100"])
    ax.set_xlabel("time of the fastest rival over ours:\nfull dots as measured, open ones with AVX2 alone")
    ax.grid(axis="x", color="0.9")
    ax.spines[["top", "right"]].set_visible(False)
    fig.savefig(Path(folder) / "benchmarks.svg")
    plt.close(fig)


def page():
    """The whole page."""
    lines = [
        "# Benchmarks",
        "",
        "Beside the best packages that we know, on the same data, from the same start, to the same quality.",
    ]
    lines += ["Ratios count; seconds are of one machine. `make bench` measures all of it anew.", ""]
    lines += [":::{div} wide", "![The fastest rival of each case](_static/benchmarks.svg)", ":::", ""]
    lines += [
        "*Right of 1 we are faster than the fastest rival that reached the quality asked of all; its name is beside.*",
        "",
    ]
    lines += ["## Where others are ahead", "", "Of all that reached the same quality, in time or in memory:", ""]
    lines += [f"| case | who | {' | '.join(COLUMNS.values())} |", "|---|---|" + "---|" * len(COLUMNS)]
    for (title, who), told in behind().items():
        lines += [f"| {title} | {who} | {' | '.join(told.get(column, '–') for column in COLUMNS)} |"]
    readme = (ROOT / "benchmarks" / "README.md").read_text().partition("## How it is measured")[2]
    lines += ["", "## How it is measured", readme.strip().partition("\n## ")[0], ""]
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text().partition("\n")[2]
    lines += ["## All figures", "", results.replace("\n## ", "\n### ").replace("[README.md](README.md)", "above")]
    return "\n".join(lines)
