# Settle
# SPDX-License-Identifier: Apache-2.0
"""What the answers of a control socket say of a change."""

import json
import re

from ledger import ACCEPTED, MEMORY_ONLY, REJECTED, WAITING

ANSWER = re.compile(rb'\{"id":"k(\d+)-(\d+)"')
ACCEPTED_EVENT = re.compile(rb'"id":"k(\d+)-(\d+)","key":"[^"]*","phase":"accepted"')
GATEWAY = re.compile(rb'"gateway":"([^"]*)"')
NUMBERS = re.compile(r"\d+(\.\d+)?")


def identify(line):
    """The key's number and the value that an answer belongs to; two times `None` if it is none of the load's."""
    found = ANSWER.match(line) or re.fullmatch(r"k(\d+)-(\d+)", str(json.loads(line).get("id")))
    return (int(found[1]), int(found[2])) if found else (None, None)


def outcome(line):
    """Of an answer the outcome, the gateway that says it, and the reason."""
    gateway = GATEWAY.search(line)
    gateway = gateway[1].decode() if gateway else None
    if b'"phase":"accepted"' in line and b'"reason":null' in line:
        return ACCEPTED, gateway, None
    answer = json.loads(line)
    reason = answer.get("reason")
    if answer.get("phase") == "accepted":
        if reason and reason.startswith("held in memory only"):
            return MEMORY_ONLY, gateway, shortened(reason)
        return ACCEPTED, gateway, shortened(reason)
    if "error" in answer:
        if answer["error"].get("code") == "unanswered":
            return WAITING, gateway, "answered that the outcome is unknown"
        reason = f"{answer['error'].get('code')}: {answer['error'].get('message')}"
    return REJECTED, gateway, shortened(f"{answer.get('phase', 'error')}: {reason}")


def shortened(reason):
    return reason and NUMBERS.sub("N", reason)[:160]
