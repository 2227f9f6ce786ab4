"""The sample project of the questions, with the correct answers.

`Ledger.post_entry` is used 30 times in 12 files; a second class has a method of that name, and the word
occurs in strings and comments.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

NAME, NEW_NAME = "post_entry", "record_entry"
LEDGER, EDITED = "shop/ledger.py", "shop/billing00.py"
USERS, FILLERS = 12, 30
METHODS = ["open_account", NAME, "balance_of", "close_account", "statement", "total"]
FUNCTIONS = ["merge", "parse_amount"]
DOC = "Post one amount to an account."

HEAD = '''"""Ledgers: accounts and what is posted to them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Entry:
    """One posted amount."""

    account: str
    amount: int
    memo: str = ""


@dataclass
class Ledger:
    """Accounts with their entries."""

    name: str
    entries: list[Entry] = field(default_factory=list)

    def open_account(self, account: str) -> None:
        """Open an account, with nothing on it."""
        self.entries.append(Entry(account, 0, "opened"))

'''
TAIL = '''
    def balance_of(self, account: str) -> int:
        """What is on an account."""
        found = [entry.amount for entry in self.entries if entry.account == account]
        return sum(found)

    def close_account(self, account: str) -> int:
        """Close an account and say what was on it."""
        rest = self.balance_of(account)
        self.entries = [entry for entry in self.entries if entry.account != account]
        return rest

    def statement(self, account: str, limit: int = 10) -> list[str]:
        """The last lines of an account."""
        lines: list[str] = []
        for entry in self.entries:
            if entry.account == account:
                lines.append(f"{entry.memo}: {entry.amount}")
        return lines[-limit:]

    def total(self) -> int:
        """Everything on all accounts."""
        return sum(entry.amount for entry in self.entries)


def merge(one: Ledger, other: Ledger) -> Ledger:
    """A ledger with the entries of both."""
    both = Ledger(f"{one.name}+{other.name}")
    both.entries = [*one.entries, *other.entries]
    return both


def parse_amount(text: str) -> int:
    """Cents of a written amount."""
    whole, _, cents = text.partition(".")
    return int(whole) * 100 + int(cents or 0)
'''
BODY = f'''    def {NAME}(self, account: str, amount: int, memo: str = "") -> Entry:
        """{DOC}"""
        entry = Entry(account, amount, memo)
        self.entries.append(entry)
        return entry
'''
DECOY = '''"""Journals: another class with a method of that name."""


class Journal:
    """Notes of the day."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def post_entry(self, account: str, note: str) -> str:
        """Write a note; the name is all that it shares with post_entry of a ledger."""
        self.notes.append(f"{account}: {note}")
        return "post_entry"

    def use_post_entry(self) -> str:
        """Use the one above."""
        return self.post_entry("post_entry", "post_entry")
'''
FILLER = '''
def step_{n}_{k}(values: list[int], factor: int = {k}) -> int:
    """Step {k} of chain {n}."""
    result = 0
    for index, value in enumerate(values):
        if value % (factor + 1) == 0:
            result += value * factor + index
        elif value > 100:
            result -= value // (factor + 2)
        else:
            result += index
    return result + {n}

'''


@dataclass(frozen=True, order=True)
class Place:
    """The 1-based line of a text in a file."""

    path: str
    line: int


def user(number: int) -> str:
    """A module that uses the method two or three times."""
    lines = [
        f'"""Billing {number}: posts what has to be paid."""',
        "",
        "from shop.journal import Journal",
        "from shop.ledger import Ledger",
        "",
        "",
        f"def bill_{number}(ledger: Ledger, journal: Journal, amounts: list[int]) -> int:",
        '    """Post a bill; post_entry is a word here."""',
        f'    ledger.{NAME}("cash", {number}, "first of {number}")',
        "    # post_entry in a comment",
        '    journal.post_entry("cash", "post_entry")',
        "    for amount in amounts:",
        f'        ledger.{NAME}("sales", amount)',
    ]
    if number % 2:
        lines.append(f'    ledger.{NAME}("tax", sum(amounts) // 5)')
    lines += ['    return ledger.balance_of("cash")', "", ""]
    return "\n".join(lines) + "".join(FILLER.format(n=number, k=k) for k in range(1, 9))


def files(name: str = NAME) -> dict[str, str]:
    """The files of the project, with `name` as name of the method."""
    found = {
        "pyproject.toml": '[tool.basedpyright]\ntypeCheckingMode = "basic"\n',
        "shop/__init__.py": '"""A shop."""\n',
        LEDGER: HEAD + BODY + TAIL,
        "shop/journal.py": DECOY,
    }
    found |= {f"shop/billing{n:02}.py": user(n) for n in range(USERS)}
    for n in range(FILLERS):
        found[f"shop/chain{n:02}.py"] = f'"""Chain {n}."""\n\n' + "".join(
            FILLER.format(n=n, k=k) for k in range(1, 12)
        )
    if name != NAME:
        found[LEDGER] = found[LEDGER].replace(f"def {NAME}", f"def {name}")
        for path in found:
            found[path] = found[path].replace(f"ledger.{NAME}", f"ledger.{name}")
    return found


def write(folder: Path, name: str = NAME) -> None:
    """Write the project."""
    for path, text in files(name).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def differs(folder: Path, name: str) -> list[str]:
    """Files that are wrong if the method has this name."""
    return [path for path, text in files(name).items() if (folder / path).read_text() != text]


def uses() -> set[Place]:
    """The uses of the method."""
    return {
        Place(path, number)
        for path, text in files().items()
        for number, line in enumerate(text.splitlines(), 1)
        if f"ledger.{NAME}" in line
    }


def definition() -> Place:
    """The location of the definition."""
    return Place(LEDGER, files()[LEDGER].splitlines().index(BODY.splitlines()[0]) + 1)


def column() -> int:
    """The 1-based column of the name there."""
    return BODY.index(NAME) + 1


def use() -> Place:
    """A use in the edited file."""
    return min(place for place in uses() if place.path == EDITED)


def use_column() -> int:
    """The 1-based column of the name there."""
    return files()[EDITED].splitlines()[use().line - 1].index(NAME) + 1


def edited(number: int) -> tuple[str, str]:
    """The n-th version of the edited file, and the word of its only error, which is always different."""
    word = f"wrong_{number}"
    mistake = f'\n\ndef late_{number}(ledger: Ledger) -> None:\n    ledger.{NAME}("cash", "{word}")\n'
    return files()[EDITED].rstrip("\n") + mistake, word


def modules() -> int:
    """The number of Python files."""
    return sum(path.endswith(".py") for path in files())
