"""Sentences that carry what they are about, and are worded where they are shown.

    Message.of("Class ", ClassName(1), " has no rows.")        a string, "Class 1 has no rows."
    message.named(["no", "yes"])                               "Class 'yes' has no rows."

A model that was fitted to codes words its sentences with codes; whoever has the labels words them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from numpy.typing import NDArray


@dataclass(frozen=True)
class ClassName:
    """A class in a sentence: its label, written as in Python unless `plain`."""

    label: Any
    plain: bool = False

    def __str__(self) -> str:
        return str(self.label) if self.plain else shown(self.label)


def shown(label: Any) -> str:
    """A label as a person would write it: no NumPy types."""
    return repr(label.item() if hasattr(label, "item") else label)


class Message(str):
    """A sentence made of text and of classes, which can be worded again under other names of the classes."""

    parts: tuple[str | ClassName, ...] = ()

    @classmethod
    def of(cls, *parts: str | ClassName) -> Self:
        """A sentence from its parts in order; messages among them keep their classes."""
        flat: list[str | ClassName] = []
        for part in parts:
            flat.extend(part.parts if isinstance(part, Message) and part.parts else [part])
        message = cls("".join(map(str, flat)))
        message.parts = tuple(flat)
        return message

    @classmethod
    def listing(cls, labels: Iterable[Any], more: str = "", *, plain: bool = False) -> Self:
        """Labels with commas between them, and `more` behind them."""
        parts = [part for label in labels for part in (", ", ClassName(label, plain))]
        return cls.of(*parts[1:], more)

    @classmethod
    def joined(cls, *sentences: str) -> Self:
        """Those of the sentences that are not empty, with a space between them."""
        parts = [part for sentence in sentences if sentence for part in (" ", sentence)]
        return cls.of(*parts[1:])

    def named(self, names: Sequence[Any] | NDArray[Any]) -> str:
        """The sentence for models fitted to codes: every class by its name, where its code has one."""

        def word(part: str | ClassName) -> str:
            if isinstance(part, str):
                return part
            coded = isinstance(part.label, int) or hasattr(part.label, "__index__")
            return shown(names[int(part.label)]) if coded and 0 <= part.label < len(names) else str(part)

        return "".join(map(word, self.parts)) if self.parts else str(self)

    def on_one_line(self) -> Message:
        """The same with single spaces between the words, but for those of the names."""
        parts = [part if isinstance(part, ClassName) else " ".join(f"|{part}|".split())[1:-1] for part in self.parts]
        return Message.of(*parts)


def message_of(error: BaseException) -> str:
    """The sentence of an error or warning, with its classes where it carries them."""
    return error.args[0] if len(error.args) == 1 and isinstance(error.args[0], Message) else str(error)
