# Settle
# SPDX-License-Identifier: Apache-2.0
"""What people ask for, and what they are told about it."""

from dataclasses import dataclass, field

ACCEPTED, REJECTED, REFUSED, LOST = "accepted", "rejected", "refused", "lost"


def rejection(reason):
    """The status of an answer that rejects a change: a gateway that is stopping takes none."""
    return REFUSED if any(word in (reason or "") for word in ("shut", "stopping")) else REJECTED


@dataclass
class Answer:
    """`status` is `None` until the gateway has answered; then one of the four words above.

    REFUSED: the gateway was stopping. LOST: it was killed, or the connection ended, before it answered.
    """

    status: str = None
    value: object = None
    reason: str = None


@dataclass
class Part:
    """What a change asks of one property of one device. `answer` is shared by the members of a group."""

    change: object
    device: str
    property: str
    verb: str  # set, step, toggle or press
    argument: object
    answer: Answer
    #: What it can have led to, for the order of messages.
    outcome: object = None
    is_of_group: bool = False

    @property
    def number(self):
        return self.change.number


@dataclass
class Change:
    """One request: `verb` is set, step, toggle, press, many, scene, flush or cancel; `target` a key, device or scene."""

    number: int
    at: float
    gesture: int
    surface: str
    verb: str
    target: str
    argument: object
    is_now: bool = False
    #: A value that must be refused.
    is_mistake: bool = False
    id: str = ""
    #: Key -> what was answered; of a cancel, `value` is how many values it dropped.
    answers: dict = field(default_factory=dict)
    parts: list = field(default_factory=list)

    def answer(self, key, status, value=None, reason=None):
        """The first answer counts."""
        for name in [key] if key in self.answers else list(self.answers):
            answer = self.answers[name]
            if answer.status is None:
                answer.status, answer.value, answer.reason = status, value, reason

    def forget_answers(self):
        for answer in self.answers.values():
            answer.status = answer.value = answer.reason = None

    def lose(self):
        for key in self.answers:
            self.answer(key, LOST)

    @property
    def is_answered(self):
        return all(answer.status for answer in self.answers.values())

    def __str__(self):
        status = ", ".join(
            f"{key} {answer.status or 'unanswered'}" + (f" {answer.value}" if answer.value is not None else "")
            + (f" ({answer.reason})" if answer.reason else "")
            for key, answer in self.answers.items()
        )
        argument = "" if self.argument is None else f" {self.argument}"
        return f"#{self.number} by {self.surface}: {self.verb} {self.target}{argument}{' now' if self.is_now else ''}: {status}"


@dataclass
class Restart:
    at: float
    is_kill: bool


@dataclass
class Failed:
    """A command failed or expired: the target of its key is the reported value again.

    `id` is that of its change.
    """

    at: float
    key: str
    id: str = ""
