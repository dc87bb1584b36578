"""Renders templates with Jinja itself: one JSON request a line on standard input, one answer a line.

A command has variables for each value. For a report, samples are made from what the template compares
and looks up, and from the property's words.
"""

import functools
import json
import math
import re
import sys

try:
    import jinja2
    from jinja2 import nodes
except ImportError:
    sys.exit("python3 has no module jinja2; install the Debian package python3-jinja2")
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOTHING = object()


def fallback(value, default):
    if default is NOTHING:
        raise jinja2.TemplateError(f"no number: {value!r}")
    return default


def to_float(value, default=NOTHING):
    try:
        return float(value)
    except (TypeError, ValueError):
        return fallback(value, default)


def to_int(value, default=NOTHING, base=10):
    try:
        return int(value, base) if isinstance(value, str) else int(value)
    except (TypeError, ValueError):
        try:
            return int(float(value))
        except (TypeError, ValueError, OverflowError):
            return fallback(value, default)


def to_round(value, precision=0, method="common", default=NOTHING):
    try:
        number, power = float(value), float(10**precision)
    except (TypeError, ValueError):
        return fallback(value, default)
    if method == "ceil":
        number = math.ceil(number * power) / power
    elif method == "floor":
        number = math.floor(number * power) / power
    elif method == "half":
        number = round(number * 2) / 2
    else:
        number = round(number, precision)
    return int(number) if precision == 0 else number


def to_bool(value, default=NOTHING):
    if isinstance(value, (bool, int, float)):
        return bool(value)
    word = str(value).lower().strip()
    if word in ("1", "true", "yes", "on", "enable"):
        return True
    if word in ("0", "false", "no", "off", "disable"):
        return False
    return fallback(value, default)


def is_number(value):
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return False


def iif(value, if_true=True, if_false=False, if_none=NOTHING):
    if value is None and if_none is not NOTHING:
        return if_none
    return if_true if value else if_false


def is_defined(value):
    if isinstance(value, jinja2.Undefined):
        raise jinja2.TemplateError("undefined")
    return value


def extreme(of):
    return lambda *values: of(values[0] if len(values) == 1 else values)


environment = ImmutableSandboxedEnvironment()
environment.filters.update(
    {
        "float": to_float,
        "int": to_int,
        "round": to_round,
        "bool": to_bool,
        "is_number": is_number,
        "iif": iif,
        "is_defined": is_defined,
        "from_json": json.loads,
        "to_json": lambda value: json.dumps(value, separators=(",", ":")),
        "multiply": lambda value, amount, default=NOTHING: to_float(value, default) * amount,
        "add": lambda value, amount, default=NOTHING: to_float(value, default) + amount,
        "bitwise_and": lambda value, other: value & other,
        "bitwise_or": lambda value, other: value | other,
        "ord": ord,
    }
)
environment.globals.update(
    {
        "float": to_float,
        "int": to_int,
        "bool": to_bool,
        "is_number": is_number,
        "iif": iif,
        "min": extreme(min),
        "max": extreme(max),
    }
)
environment.tests["is_number"] = is_number


@functools.cache
def compiled(template):
    return environment.from_string(template)


def rendered(template, variables):
    try:
        return compiled(template).render(variables).strip()
    except Exception:  # noqa: BLE001 - whatever is wrong, there is no result
        return None


def report(template, payload, variables):
    variables = {**variables, "value": payload}
    try:
        variables["value_json"] = json.loads(payload)
    except ValueError:
        pass
    return rendered(template, variables)


def chain(node):
    """The path of `value_json.a['b']`, or None."""
    path = []
    while isinstance(node, (nodes.Getattr, nodes.Getitem)):
        if isinstance(node, nodes.Getattr):
            path.insert(0, node.attr)
        elif isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, (str, int)):
            path.insert(0, node.arg.value)
        else:
            return None
        node = node.node
    if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr) and node.node.attr == "get":
        inner = chain(node.node.node)
        return None if inner is None or not node.args else inner + [node.args[0].value] + path
    return path if isinstance(node, nodes.Name) and node.name == "value_json" else None


def facts(template):
    """The paths that a template reads, and the constants that it compares or looks up."""
    tree = environment.parse(template)
    kinds = (nodes.Getattr, nodes.Getitem, nodes.Call)
    methods = ("get", "split", "keys", "items")
    paths = [path for node in tree.find_all(kinds) if (path := chain(node)) and path[-1] not in methods]
    deepest = []
    for path in paths:
        longer = any(len(other) > len(path) and other[: len(path)] == path for other in paths)
        if path not in deepest and not longer:
            deepest.append(path)
    compared = []
    for kind in (nodes.Compare, nodes.Test):
        for node in tree.find_all(kind):
            compared += [const.value for const in node.find_all(nodes.Const)]
    for node in tree.find_all(nodes.Pair):
        compared += [const.value for const in [node.key, *node.key.find_all(nodes.Const)] if isinstance(const, nodes.Const)]
    longest = max([len(node.items) for node in tree.find_all(nodes.List)] + [0])
    scalars = [value for value in compared if isinstance(value, (str, int, float, bool))]
    return deepest, scalars, list(range(longest))


def placed(parts):
    root = [None] * 8 if isinstance(parts[0][0][0], int) else {}
    for path, value in parts:
        current, last = root, len(path) - 1
        for place, step in enumerate(path):
            following = value if place == last else [None] * 8 if isinstance(path[place + 1], int) else {}
            if isinstance(current, list):
                if place == last or current[step] is None:
                    current[step] = following
            elif place == last or step not in current:
                current[step] = following
            current = current[step]
    return json.dumps(root)


COLORS = [
    "255,128,0", "1,2,3", "#ff8000", "FF8000", "#010203", "32,100", "255,128,0,7", [255, 128, 0],
    {"r": 255, "g": 128, "b": 0}, {"red": 1, "green": 2, "blue": 3}, {"hue": 32, "saturation": 100},
    {"h": 32, "s": 100},
]
NUMBERS = [0, 1, 2, 3, 5, 7, 10, 16, 32, 50, 64, 99, 100, 127, 128, 150, 200, 254, 255, 977, -3, 0.5, 21.5]


def answer(request):
    template = request["template"]
    if "values" in request:
        return {"results": [rendered(template, values) for values in request["values"]]}
    variables = request["variables"]
    try:
        paths, compared, indices = facts(template)
    except jinja2.TemplateError:
        return {"samples": [], "unknown": []}
    own = request["words"]
    samples = [(value, True) for value in compared] + [(value, False) for value in indices]
    # A level is a whole number.
    numbers = [value for value in NUMBERS if not own or isinstance(value, int)]
    samples += [(value, False) for value in own + numbers + ["on", "off", "unheard of"]]
    if not any(isinstance(value, (int, float)) for value in compared):
        samples += [(True, False), (False, False)]  # which equal 1 and 0
    samples += [(str(value), False) for value in numbers]
    if request["color"]:
        samples = [(value, False) for value in COLORS]
    payloads = []
    for value, is_compared in samples:
        if paths:
            payloads.append((placed([(path, value) for path in paths]), is_compared))
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            payloads.append((text, is_compared))
    if request["color"] and len(paths) == 3:
        payloads.append((placed(list(zip(paths, [255, 128, 0]))), True))
        payloads.append((placed(list(zip(paths, [1, 2, 3]))), True))
    unknown = ["unheard of", 977, "977"]
    strange = [placed([(path, value) for path in paths]) if paths else str(value) for value in unknown]
    results = [(payload, report(template, payload, variables), named) for payload, named in payloads]
    return {
        "samples": [
            {"payload": payload, "result": result, "compared": named}
            for payload, result, named in results
            if payload and not re.fullmatch(r"(\d+\.?\d*)\1{3,}", result or "")  # a text times a number
        ],
        "unknown": [report(template, payload, variables) for payload in strange],
    }


for line in open(sys.argv[1], encoding="utf-8"):
    print(json.dumps(answer(json.loads(line))))
