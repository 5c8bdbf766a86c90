"""The page of benchmarks, from the figures that the last whole run left: what was asked, and where others are ahead."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
COLUMNS = {"native": "as measured", "avx2": "AVX2 alone"}
LEVEL = 0.95  # of the fastest rival's speed


def reports():
    """Column → its cases."""
    return {
        name: run["reports"] for name, run in json.loads((ROOT / "benchmarks" / "results.json").read_text()).items()
    }


def rivals(report):
    """(Name, time over ours, memory over ours) of those who reached the quality that was asked."""
    if "time / ours" not in report["head"]:
        return []
    at = {
        name: report["head"].index(name)
        for name in ("time / ours", "memory / ours", "reached")
        if name in report["head"]
    }
    out = []
    for row in report["rows"]:
        if row[0] == "unmix" or (not row[at.get("reached", 0)].startswith("yes") and "reached" in at):
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
    """Cases in which somebody was faster or smaller than we are, column by column."""
    out = []
    for column, cases in reports().items():
        for case in cases:
            for name, time, memory in rivals(case):
                if time is not None and time < 1:
                    out.append((case["title"], COLUMNS[column], name, f"{1 / time:.2f}× faster"))
                if memory is not None and memory < 1:
                    out.append((case["title"], COLUMNS[column], name, f"{memory:.2f} of our memory"))
            out += [
                (case["title"], COLUMNS[column], "scikit-learn", f"{row[0]}: {float(row[3]):.2f}× faster")
                for row in (case["rows"] if case["name"] == "small" else [])
                if float(row[3]) > 1
            ]
    return out


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
    fig, ax = plt.subplots(figsize=(9, 0.25 * len(cases) + 0.8), layout="constrained")
    for y, (_, found) in enumerate(cases):
        for column, (ratio, _) in found.items():
            first = column == "native"
            mark, size, fill = ("o", 7, "#0072b2") if first else ("D", 5, "white")
            ax.plot(ratio, y, mark, ms=size, mfc=fill, mec="#0072b2")
        rival, at = found[min(found)][1], ax.get_yaxis_transform()
        ax.text(1.02, y, rival, transform=at, va="center", fontsize=7, color="0.35")
    ax.axvline(1, color="black", lw=1)
    ax.set(xscale="log", yticks=range(len(cases)), ylim=(-0.8, len(cases) - 0.2))
    ax.set_yticklabels([title if len(title) < 90 else title[:89] + "…" for title, _ in cases], fontsize=7)
    ax.set_xticks([0.5, 1, 2, 5, 10, 20, 50, 100], ["½", "1", "2", "5", "10", "20", "50", "100"])
    ax.set_xlabel("time of the fastest rival over ours: full dots as measured, open ones with AVX2 alone")
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
    lines += ["![The fastest rival of each case](_static/benchmarks.svg)", ""]
    lines += [
        "*Right of 1 we are faster than the fastest rival that reached the quality asked of all; its name is beside.*",
        "",
    ]
    lines += ["## Where others are ahead", "", "| case | | who | by |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(cells)} |" for cells in behind()]
    readme = (ROOT / "benchmarks" / "README.md").read_text().partition("## How it is measured")[2]
    lines += ["", "## How it is measured", readme.strip().partition("\n## ")[0], ""]
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text().partition("\n")[2]
    lines += ["## All figures", "", results.replace("\n## ", "\n### ").replace("[README.md](README.md)", "above")]
    return "\n".join(lines)
