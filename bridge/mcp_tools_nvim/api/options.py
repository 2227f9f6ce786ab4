"""The signature of a call: its options, and how the ways to call share it.

Receives and sends nothing; imports no other part, as the import of the package must be cheap.
Does not know about: what the options do.

Arguments of a tool may be given by name beside the options. Type checkers would refuse those if signatures
ended in `**options: Unpack[CallOptions]`, so two signatures are written out, and two refer to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypedDict, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
First = TypeVar("First")
Answer = TypeVar("Answer")


class CallOptions(TypedDict, total=False):
    """Options of a call, for programs that hand them on; `call_tool` says what they mean."""

    timeout: int | None
    on_progress: Callable[[dict[str, Any]], Any] | None
    on_log: Callable[[str, Any], Any] | None
    on_elicit: Callable[[str, dict[str, Any]], Any] | None


def takes_what(
    model: Callable[Concatenate[Any, P], object],
) -> Callable[[Callable[Concatenate[First, ...], Answer]], Callable[Concatenate[First, P], Answer]]:
    """The decorated function takes what `model` takes; whatever shows signatures shows that one."""

    def mark(function: Any) -> Any:
        function.__wrapped__ = model
        return function

    return mark


def parted(given: dict[str, Any]) -> tuple[CallOptions, dict[str, Any]]:
    """The options, and the arguments by name that stood among them."""
    options: Any = {name: value for name, value in given.items() if name in CallOptions.__optional_keys__}
    return options, {name: value for name, value in given.items() if name not in options}
