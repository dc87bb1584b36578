# Settle
# SPDX-License-Identifier: Apache-2.0
"""The rows of a run: collecting, printing, writing, reading back."""

import json
import math
import os
import platform
import statistics
import sys
import time


class Sample:
    """Repeated measurements of one figure."""

    def __init__(self, values):
        values = list(values) if isinstance(values, (list, tuple)) else [values]
        self.minimum, self.maximum = min(values), max(values)
        self.median = statistics.median(values)
        self.count = len(values)

    def as_object(self):
        names = ("minimum", "median", "maximum", "count")
        return {name: getattr(self, name) for name in names}


class Table:
    """All rows and curves of a run, in the order of measuring."""

    def __init__(self, quick):
        self.quick = quick
        self.part = ""
        self.rows = []
        self.curves = []

    def row(self, figure, unit, reference, ours, goal=None, against="", note=""):
        """Adds a row; `reference` and `ours` are a value, a list of values, or None for nothing.

        `goal` is the largest ratio that meets it, or 0 for nothing at all. Lists were measured in turn,
        so each turn has a ratio, and theirs is the median.
        """
        turns = ratios_of_turns(reference, ours)
        reference = None if reference is None else Sample(reference)
        ours = Sample(ours)
        ratio = statistics.median(turns) if turns else None
        compared = ours.median if goal == 0 else ratio
        self.rows.append(
            {
                "part": self.part,
                "figure": figure,
                "unit": unit,
                "against": against,
                "reference": reference and reference.as_object(),
                "ours": ours.as_object(),
                "ratio": ratio,
                "ratios_of_turns": turns,
                "ratio_of_minima": (
                    ours.minimum / reference.minimum if reference and reference.minimum else None
                ),
                "goal": goal,
                "met": None if goal is None or compared is None else compared <= goal,
                "close": bool(goal) and is_among(turns, goal),
                "note": note,
            }
        )
        self.tick()

    def skip(self, figure, why):
        self.rows.append({"part": self.part, "figure": figure, "skipped": why})
        self.tick()

    def curve(self, figure, unit, points, has_base=False):
        """Adds a figure over sizes: `points` are three pairs of a size, tenfold each, and a value.

        `has_base` says that part of the figure is there at any size, as a program's own memory is.
        """
        name, exponent = growth([value for _, value in points], has_base)
        self.curves.append(
            {
                "part": self.part,
                "figure": figure,
                "unit": unit,
                "points": [list(point) for point in points],
                "growth": name,
                "exponent": exponent,
            }
        )
        self.tick()

    def tick(self):
        print(".", end="", file=sys.stderr, flush=True)

    def document(self, seconds):
        return {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": platform.machine(),
            "processor": processor(),
            "cpus": os.cpu_count(),
            "load": round(os.getloadavg()[0], 2),
            "quick": self.quick,
            "seconds": round(seconds, 1),
            "rows": self.rows,
            "curves": self.curves,
        }


def ratios_of_turns(reference, ours):
    """Ours divided by the reference, per turn; a slowdown of a whole turn cancels out."""
    if reference is None:
        return []
    pair = [values if isinstance(values, (list, tuple)) else [values] for values in (reference, ours)]
    if len(pair[0]) != len(pair[1]):
        pair = [[statistics.median(values)] for values in pair]
    return [mine / theirs for theirs, mine in zip(*pair) if theirs]


def is_among(turns, goal):
    """Whether the middle half of the turns lies around `goal`."""
    if len(turns) < 4:
        return False
    first, _, last = statistics.quantiles(turns, n=4)
    return first <= goal <= last


def processor():
    """The kernel's name of the processor."""
    try:
        with open("/proc/cpuinfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown"


def growth(values, has_base):
    """The name of a growth, and its exponent `e`; the sizes are tenfold each.

    The curve is `b * n^e` through the first and the last value, or, with a base, `a + b * n^e`
    through all three.
    """
    first, middle, last = values
    if max(values) < 1.5 * min(values):
        return "constant", 0.0
    steps = (middle - first, last - middle)
    if has_base and min(steps) > 0:
        exponent = math.log10(steps[1] / steps[0])
    else:
        exponent = math.log10(max(last, 1e-9) / max(first, 1e-9)) / 2
    for limit, name in (
        (-0.2, "falling"),
        (0.2, "about constant"),
        (0.8, "less than linear"),
        (1.25, "linear"),
        (1.7, "more than linear"),
    ):
        if exponent < limit:
            return name, exponent
    return "quadratic or worse", exponent


def number(value):
    if value is None:
        return "-"
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    if value >= 10 or value == int(value):
        return f"{value:.1f}".removesuffix(".0")
    return f"{value:.2f}"


def spread(sample):
    """`minimum / median / maximum`, or one number if there is but one."""
    if sample is None:
        return "-"
    if sample["count"] == 1:
        return number(sample["median"])
    return " / ".join(number(sample[name]) for name in ("minimum", "median", "maximum"))


def ratio(value):
    """Ratios far below one are shown as how many times less it is."""
    if value is None:
        return "-"
    return f"1/{1 / value:.0f}" if 0 < value < 0.2 else f"{value:.2f}"


def goal(value):
    if value is None:
        return "-"
    if value == 0:
        return "0"
    return f"<= 1/{1 / value:.0f}" if value < 0.4 else f"<= {value:.3g}"


def verdict(row, missed="MISSED", unmeasured="report only"):
    words = {True: "met", False: missed, None: row["note"] or unmeasured}[row["met"]]
    return words + " ~" if row["close"] else words


CLOSE = (
    "~: the middle half of the turns lies around the goal, so that another run may say the opposite."
)


def is_any_close(document):
    return any(row.get("close") for row in document["rows"])


def cells(document):
    """The table's lines, heads first."""
    yield ("figure", "unit", "reference", "ours", "ratio", "goal", "")
    for row in document["rows"]:
        if "skipped" in row:
            yield (row["figure"], "skipped: " + row["skipped"], "", "", "", "", "")
            continue
        yield (
            row["figure"],
            row["unit"],
            spread(row["reference"]),
            spread(row["ours"]),
            ratio(row["ratio"]),
            goal(row["goal"]),
            verdict(row),
        )


def curve_cells(document):
    yield ("figure", "unit", "sizes: values", "growth")
    for curve in document["curves"]:
        points = ", ".join(f"{size:,}: {number(value)}" for size, value in curve["points"])
        yield (
            curve["figure"],
            curve["unit"],
            points,
            curve["growth"] + (f" (n^{curve['exponent']:.2f})" if curve["exponent"] else ""),
        )


def print_aligned(lines, right=()):
    lines = list(lines)
    if len(lines) < 2:
        return
    # The reason of a skipped row may be long.
    short = [line for line in lines if not line[1].startswith("skipped")]
    widths = [max(len(line[column]) for line in short) for column in range(len(lines[0]))]
    widths[0] = max(len(line[0]) for line in lines)
    for line in lines:
        texts = [
            text.rjust(width) if column in right else text.ljust(width)
            for column, (text, width) in enumerate(zip(line, widths))
        ]
        print("  ".join(texts).rstrip())


def print_table(document):
    print("\nEach measurement: minimum / median / maximum; the ratio is the median of the turns' ratios.")
    print(CLOSE + "\n" if is_any_close(document) else "")
    print_aligned(cells(document), right=(2, 3, 4, 5))
    print()
    print_aligned(curve_cells(document))


def markdown(document):
    """The tables of docs/performance.md: goals, other measurements, growth."""
    quick = ", quick" if document["quick"] else ""
    lines = [
        f"Measured {document['at'][:10]} on {document['cpus']} CPUs ({document['processor']}), load"
        f" {document['load']} at the end, {document['seconds']:.0f} s{quick}. Three numbers are"
        " minimum / median / maximum; a ratio is the median of the turns' ratios."
        + (f" {CLOSE}" if is_any_close(document) else ""),
    ]
    for title, rows in (
        ("Goals", [row for row in document["rows"] if has_goal(row)]),
        ("Also measured", [row for row in document["rows"] if not has_goal(row)]),
    ):
        if not rows:
            continue
        lines += [
            "",
            f"### {title}",
            "",
            "| figure | unit | reference | its value | Settle | ratio | goal | |",
            "|---|---|---|---|---|---|---|---|",
        ]
        lines += [markdown_row(row) for row in rows]
    if document["curves"]:
        lines += ["", "### Growth", "", "| figure | unit | sizes: values | growth |"]
        lines += ["|---|---|---|---|"]
        for curve in list(curve_cells(document))[1:]:
            lines.append("| " + " | ".join(curve) + " |")
    return "\n".join(lines)


def has_goal(row):
    return row.get("goal") is not None


def markdown_row(row):
    if "skipped" in row:
        return f"| {row['figure']} | skipped: {row['skipped']} | | | | | | |"
    words = verdict(row, "**missed**", "")
    values = [row["figure"], row["unit"], row["against"] or "-", spread(row["reference"])]
    values += [spread(row["ours"]), ratio(row["ratio"]), goal(row["goal"]).replace("<=", "≤")]
    return "| " + " | ".join(values + [words]) + " |"


BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def put_between_marks(text, path):
    """Replaces the text between the marks in a file."""
    with open(path, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN)
    _, after = rest.split(END)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n{text}\n{END}{after}")


def write(document, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=2)
        file.write("\n")
