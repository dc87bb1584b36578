# Settle
# SPDX-License-Identifier: Apache-2.0
"""Reads /metrics with Prometheus' own parser and compares it with what was done."""

import re

from prometheus_client.parser import text_string_to_metric_families

FAMILY = re.compile(r"(settle|process)_[a-z]+(_[a-z]+)*")
LABEL = re.compile(r"[a-z]+")


class Mistake(Exception):
    """What was found."""


def read(gateway):
    """The families by name, and the sample values by name and labels; the form is checked."""
    status, text = gateway.ask("GET", "/metrics")
    expect(status == 200, f"/metrics is answered with {status}")
    stated = {
        word: re.findall(rf"^# {word} (\S+) \S", text, re.MULTILINE) for word in ("HELP", "TYPE")
    }
    expect(stated["HELP"] == stated["TYPE"], f"HELP and TYPE differ: {stated}")
    expect(len(set(stated["TYPE"])) == len(stated["TYPE"]), f"a family comes twice: {stated}")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    expect(len(families) == len(stated["TYPE"]), f"families without a TYPE: {list(families)}")
    values = {}
    for family in families.values():
        check(family)
        for sample in family.samples:
            place = (sample.name, *sorted(sample.labels.items()))
            expect(place not in values, f"{place} comes twice")
            values[place] = sample.value
    return families, values


def check(family):
    expect(FAMILY.fullmatch(family.name), f"{family.name}: the name is not well formed")
    expect(family.documentation.endswith("."), f"{family.name}: the help is no sentence")
    expect(family.type in ("counter", "gauge", "histogram"), f"{family.name}: a {family.type}")
    for sample in family.samples:
        expect(all(LABEL.fullmatch(name) for name in sample.labels), f"the labels of {sample}")
        if family.type == "counter":
            # The parser takes the suffix off the family, and leaves it on its samples.
            expect(sample.name == family.name + "_total", f"{sample.name} does not end in _total")
        if family.type == "gauge":
            expect(sample.name == family.name, f"{sample.name} in {family.name}")
            expect(not sample.name.endswith("_total"), f"{sample.name} is no counter")
        else:
            expect(sample.value >= 0, f"{sample} is negative")
    if family.type == "histogram":
        check_histogram(family)


def check_histogram(family):
    """One series: the buckets ascend to +Inf, which is everything."""
    parts = {}
    for sample in family.samples:
        parts.setdefault(sample.name.removeprefix(family.name), []).append(sample)
    expect(sorted(parts) == ["_bucket", "_count", "_sum"], f"{family.name} has {list(parts)}")
    bounds = [float(sample.labels["le"]) for sample in parts["_bucket"]]
    counts = [sample.value for sample in parts["_bucket"]]
    expect(bounds == sorted(set(bounds)), f"{family.name}: the bounds do not ascend: {bounds}")
    expect(counts == sorted(counts), f"{family.name}: the buckets are not cumulative: {counts}")
    expect(bounds[-1] == float("inf"), f"{family.name} does not end with +Inf")
    (count,), (total,) = parts["_count"], parts["_sum"]
    expect(count.value == counts[-1], f"{family.name}: {counts[-1]} values, but {count.value}")
    expect(count.value > 0 or total.value == 0, f"{family.name}: a sum of nothing: {total.value}")


def check_values(gateway):
    """Makes some changes on a gateway that had none, and compares."""
    _, before = read(gateway)
    property = "/v1/devices/desk-lamp/brightness"
    done = [
        ("PUT", property + "?wait=confirmed", 40, 200),
        ("PUT", property, 300, 422),
        ("PUT", "/v1/devices/desk-lamp/power?wait=confirmed", True, 200),
        ("PUT", "/v1/devices/desk-lamp/power?wait=confirmed", True, 200),
        ("POST", "/v1/devices/desk-lamp/power/toggle?wait=confirmed", None, 200),
        ("GET", "/v1/nothing", None, 404),
    ]
    for method, path, body, expected in done:
        status, text = gateway.ask(method, path, body)
        expect(status == expected, f"{method} {path} is answered with {status}: {text}")
    _, after = read(gateway)
    lamp, boiler = ("device", "desk-lamp"), ("device", "boiler")
    expected = {
        ("settle_changes_total", lamp): 4,
        ("settle_rejected_total", lamp): 1,
        ("settle_sent_total", lamp): 3,
        ("settle_confirmed_total", lamp): 3,
        ("settle_unchanged_total", lamp): 1,
        ("settle_changes_total", boiler): 0,
        ("settle_sent_total", boiler): 0,
        ("settle_pending_values",): 0,
        ("settle_journal_durable",): 1,
        ("settle_broker_connected", ("broker", "mqtt")): 1,
        ("settle_acknowledgement_seconds_count",): 3,
        # The reading of the metrics before is among them.
        ("settle_http_responses_total", ("code", "200")): 5,
        ("settle_http_responses_total", ("code", "404")): 1,
        ("settle_http_responses_total", ("code", "422")): 1,
    }
    for place, change in expected.items():
        gauge = not place[0].endswith(("_total", "_count"))
        found = after.get(place, 0) - (0 if gauge else before.get(place, 0))
        expect(found == change, f"{place} says {found} instead of {change}")


def check_run(gateway, at_least):
    """The form after a long run, and that it was no run of refusals; the journal still writes."""
    _, values = read(gateway)
    for status, count in at_least.items():
        found = values.get(("settle_http_responses_total", ("code", str(status))), 0)
        expect(found >= count, f"only {found:.0f} answers were {status}, not {count}")
    expect(values[("settle_journal_durable",)] == 1, "the journal cannot be written")
    answers = {
        place[1][1]: int(value)
        for place, value in sorted(values.items())
        if place[0] == "settle_http_responses_total"
    }
    print("Answers by status:", answers)


def expect(holds, what):
    if not holds:
        raise Mistake(f"/metrics: {what}")
