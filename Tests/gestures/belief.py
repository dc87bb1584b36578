# Settle
# SPDX-License-Identifier: Apache-2.0
"""What a value may be, for whoever has asked and has not always been answered."""


class Belief:
    """Some values, and perhaps every number between two."""

    def __init__(self, values=(), span=None):
        self.values, self.span = frozenset(values), span

    def allows(self, value):
        if value in self.values:
            return True
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return bool(self.span and is_number and self.span[0] <= value <= self.span[1])

    def join(self, other):
        spans = [span for span in (self.span, other.span) if span]
        span = (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None
        return Belief(self.values | other.values, span)

    def map(self, function):
        """The belief after a change that keeps the order of numbers."""
        return Belief(map(function, self.values), self.span and tuple(map(function, self.span)))

    def widened(self):
        """Everything between the lowest and the highest number."""
        ends = [*self.values, *(self.span or ())]
        return Belief(self.values, (min(ends), max(ends)))

    @property
    def only(self):
        """The value, if there is just one."""
        return next(iter(self.values)) if len(self.values) == 1 and not self.span else None

    def __repr__(self):
        words = [str(value) for value in sorted(self.values, key=str)]
        return " or ".join(words + ([f"{self.span[0]} to {self.span[1]}"] if self.span else []))
