# Settle
# SPDX-License-Identifier: Apache-2.0
"""What the tester cannot know from an OpenAPI document."""

import json

import schemathesis
from hypothesis import strategies
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.openapi.checks import IgnoredAuth, RejectedPositiveData

KEYS = ["desk-lamp/brightness", "desk-lamp/power", "desk-lamp/color", "boiler/note", "boiler/mode"]
PATTERNS = ["*", "desk-lamp/*", "nothing/*"]
VALUES = [0, 40, 300, 21.5, -3, True, "none", "#ff8000", "", None, [], {"x": 0.3, "y": 0.4}]

options = strategies.fixed_dictionaries(
    {},
    optional={
        "id": strategies.text(max_size=20) | strategies.integers(),
        "source": strategies.text(max_size=20),
        "now": strategies.booleans(),
        "ttl": strategies.sampled_from(["1s", "0", "5m", "soon"]),
        "wait": strategies.sampled_from(["sent", "confirmed", True, "never"]),
    },
)


def change(keys, operations):
    return strategies.builds(
        lambda key, operation, options: {"key": key, **operation, **options},
        strategies.sampled_from(keys),
        operations,
        options,
    )


objects = change(
    KEYS,
    strategies.sampled_from(VALUES).map(lambda value: {"set": value})
    | strategies.integers(-300, 300).map(lambda step: {"step": step})
    | strategies.just({"toggle": True}),
) | change(PATTERNS + KEYS, strategies.sampled_from([{"flush": True}, {"cancel": True}]))
lines = objects.map(json.dumps) | strategies.text(max_size=40)



@schemathesis.serializer("application/x-ndjson")
def text_as_it_is(context, value):
    return {"data": value.encode() if isinstance(value, str) else json.dumps(value).encode()}


@schemathesis.hook
def before_generate_body(context, strategy):
    """For POST /v1/changes the document says "a text": mostly changes, in between what is none."""
    if context.operation.path != "/v1/changes":
        return strategy
    return strategies.lists(lines, max_size=8).map("\n".join) | objects | strategy


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Says which requests fit the document and are refused for good reasons.

    Whether a value is right depends on the property: the document of all properties takes any, and
    the refusal names the key. And OpenAPI has no words for "in the query or in the body, not in
    both", which is how flush and cancel take their key.

    A wrong token is refused with 429 where more than ten came at once, and one a second after that. On a
    quick machine the tester sends more.
    """
    # A made-up time has usually passed, whatever else is right or wrong; and a made-up key is used twice.
    if response.status_code == 410 and isinstance(failure, (RejectedPositiveData, AcceptedNegativeData)):
        return False
    if isinstance(failure, RejectedPositiveData) and response.status_code == 422 and response.json()["code"] == "key_reused":
        return False
    # Nor has it words for "no name in this document, however deep, contains NUL".
    if isinstance(failure, RejectedPositiveData) and response.status_code == 400:
        return "a member's name may not contain NUL" not in response.json()["detail"]
    if isinstance(failure, IgnoredAuth) and "`429 Too Many Requests`" in failure.message:
        return False
    if not isinstance(failure, RejectedPositiveData) or response.status_code != 422:
        return True
    problem = response.json()
    if case.path.startswith("/v1/devices/{id}"):
        return "key" not in problem and problem["code"] != "cannot_confirm"
    if case.path in ("/v1/flush", "/v1/cancel"):
        return problem["code"] not in ("several_operations", "missing_key")
    return True
