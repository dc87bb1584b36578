# Settle
# SPDX-License-Identifier: Apache-2.0
"""The figures of a run, as JSON and as a table."""

from ledger import DELIVERED_WITHIN

SHOWN = 20  # of each kind of violation


def percentile(ordered, part):
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * part))], 3) if ordered else None


def summary(values):
    ordered = sorted(values)
    return {
        "count": len(ordered), "p50": percentile(ordered, 0.5), "p95": percentile(ordered, 0.95),
        "max": round(ordered[-1], 3) if ordered else None,
    }


def latencies(counter):
    """The percentiles of a counter of whole milliseconds."""
    total, seen, result = sum(counter.values()), 0, {}
    wanted = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)]
    for value, count in sorted(counter.items()):
        seen += count
        while wanted and seen >= total * wanted[0][1]:
            result[wanted.pop(0)[0]] = value
    return result | {"max": max(counter, default=None)}


class Report:
    """`violations` must be empty: what they are -> the cases."""

    def __init__(self, run, verdict, ledger, load, faults, log, seconds):
        times = [time for takeover in faults.takeovers for time in takeover["seconds"]]
        self.violations = {
            "accepted values lost": verdict.lost,
            f"accepted, not delivered in {DELIVERED_WITHIN:.0f} s": verdict.late,
            "older after newer": verdict.older,
            "accepted by two gateways": verdict.two_gateways,
            "log written by two owners": log.check.violations if log else [],
            "delivered and never sent": verdict.invented,
            "takeovers not finished": [str(takeover) for takeover in faults.takeovers if takeover["unfinished"]],
            "problems": faults.problems,
        }
        self.figures = {
            "run": run,
            "seconds": round(seconds, 1),
            "violations": {name: len(cases) for name, cases in self.violations.items()},
            "changes": dict(sorted(verdict.counts.items())),
            "changes_per_second": round(verdict.counts["changes sent"] / seconds),
            "changes_per_second_median": percentile(sorted(ledger.sent_in.values()), 0.5),
            "accepted_per_second": round((verdict.counts["accepted"] + verdict.counts["accepted in memory only"]) / seconds),
            "mqtt acknowledged, not committed": len(verdict.uncommitted),
            "replaced by an older one, unanswered then": len(verdict.reordered),
            "reasons": dict(ledger.reasons.most_common(30)),
            "unknown_outcomes": dict(ledger.unknown), "answers_after_timeout": ledger.late,
            "answer_ms": latencies(ledger.latencies),
            "faults": faults.counts, "kills": faults.kills,
            "takeover_seconds": summary(times),
            "takeovers": [
                {"gateway": one["gateway"], "restart_after": round(one["restart_after"], 1)} | summary(one["seconds"])
                for one in faults.takeovers
            ],
            "pause_seconds": {
                kind: summary([one["seconds"] for one in faults.pauses if one["fault"] == kind])
                for kind in sorted({one["fault"] for one in faults.pauses})
            },
            "partitions_moved": faults.moved,
            "load": dict(load.counts),
            "log": {
                "frames": log.check.frames, "unreadable": log.check.unreadable, "removed before they were read": log.missed,
            } if log else None,
            "cases": {name: cases[:SHOWN] for name, cases in self.violations.items() if cases},
            "uncommitted": verdict.uncommitted[:SHOWN],
            "reordered_cases": verdict.reordered[:SHOWN],
            "timeline": faults.timeline,
        }

    @property
    def is_failed(self):
        return any(self.violations.values())

    @property
    def line(self):
        """The figures in one line."""
        figures, takeover = self.figures, self.figures["takeover_seconds"]
        took = f"{takeover['count']} partitions taken over in {takeover['p50']} s (most: {takeover['max']} s), " if takeover["count"] else ""
        return (
            f"{figures['seconds']:.0f} s, {figures['changes'].get('accepted', 0)} accepted changes, {sum(figures['faults'].values())} faults,"
            f" {figures['kills']} kills, {took}{sum(figures['violations'].values())} violations"
        )

    def text(self):
        figures, lines = self.figures, []

        def add(name, value):
            lines.append(f"  {name:44} {value}")

        def spread(values):
            return ", ".join(f"{name} {value}" for name, value in values.items())

        lines.append(f"Run of {figures['seconds']} s: {spread(figures['run'])}")
        for name, count in figures["violations"].items():
            add(name, f"{count}{'' if count == 0 else '   <-- must be 0'}")
        lines.append("Changes")
        add("a second: sent, median of them, accepted", ", ".join(
            str(figures[name]) for name in ("changes_per_second", "changes_per_second_median", "accepted_per_second")
        ))
        for name, count in figures["changes"].items():
            add(name, count)
        add("mqtt acknowledged, not committed", figures["mqtt acknowledged, not committed"])
        add("replaced by an older one, unanswered then", figures["replaced by an older one, unanswered then"])
        add("answers, ms", spread(figures["answer_ms"]))
        for name, count in (figures["unknown_outcomes"] | figures["reasons"]).items():
            lines.append(f"    {count:8} {name}")
        lines.append(f"Faults ({figures['kills']} kills)")
        for name, count in sorted(figures["faults"].items()):
            pause = figures["pause_seconds"].get(name)
            moved = figures["partitions_moved"].get(name)
            more = f"; longest pause of accepted answers, s: {spread(pause)}; partitions moved: {moved}" if pause else ""
            add(name, f"{count}{more}")
        add("takeover, s", spread(figures["takeover_seconds"]))
        for one in figures["takeovers"]:
            add("", spread(one))
        if figures["log"]:
            add("log", spread(figures["log"]))
        for name, cases in figures["cases"].items():
            lines.append(f"{name}:")
            lines += [f"    {case}" for case in cases]
        return "\n".join([*lines, self.line])
