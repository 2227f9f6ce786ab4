"""The generated project of the tasks: 80 modules of a shop, or hundreds more with the same names in them."""

from __future__ import annotations

import re
from pathlib import Path

METHOD, NEW_METHOD = "post_entry", "record_entry"
TAX, TILL = "shopkit/core/tax.py", "shopkit/services/till.py"
YEAR, USERS, HEADERS, CHAINS = "# Copyright Shopkit 2024", 12, 20, 42
RULES = {"Percent": "Rule", "Seasonal": "Percent", "Fixed": "BaseRule", "Bulk": "Fixed", "Clearance": "Bulk"}
RULES |= {"Loyalty": "Percent"}
HANDLERS = {
    "Local": "Handler",
    "Remote": "Handler",
    "Archived": "Base",
    "Cached": "Local",
    "Mirrored": "Remote",
}
HANDLERS |= {"Signed": "Remote", "Batched": "Cached"}
"""Classes with their bases. `BaseRule` and `Base` are other names of `Rule` and `Handler`."""
CALLERS = {"order_total": "apply_discount", "bill_total": "apply_discount", "quote_total": "apply_discount"}
CALLERS |= {"serve_order": "order_total", "send_bill": "bill_total", "print_bill": "bill_total"}
"""Functions with what they call."""
STEP = '''

def step_{n}_{k}(values: list[int], factor: int = {k}) -> int:
    """Return step {k} of chain {n}."""
    result = 0
    for index, value in enumerate(values):
        result += value * factor + index if value % (factor + 1) == 0 else -index
    return result
'''
REGION = '''

class Region{n:02}Tax:
    """Taxes of region {n}."""

    brackets = [(1000, {n}), (5000, 30)]
'''
RATE = '''
    def {word}_rate(self, amount: int, year: int = 2024) -> int:
        """Return the {word} rate."""
        rate = year % {n} + 7
        return amount * rate // 100
'''
COLLECT = '''

def collect_region_{n:02}(amounts: list[int], year: int = 2024) -> int:
    """Collect the taxes of region {n}."""
    tax = Region{n:02}Tax()
    return sum(tax.base_rate(each, year) for each in amounts)
'''
LONG_HEAD = "    def assess(self, lines: list[int], region: str) -> dict[str, int]:\n"
LONG_PART = """        if len(lines) > {n}:
            rate = 4 * {n} + 3
            key = f"{{region}}/{n}"
            part = lines[{n}] * rate // 100
            result[key] = part + len(region) % 7
"""
LONG = (
    f'{LONG_HEAD}        """Return the tax of each line, bracket by bracket."""\n'
    + "        result: dict[str, int] = {}\n"
    + "".join(LONG_PART.format(n=n) for n in range(10))
    + '        total = sum(result.values())\n        result["total"] = total\n        return result\n'
)
SHORT = f'''{LONG_HEAD}        """Return the tax of each line by its bracket."""
        result: dict[str, int] = {{}}
        for number, amount in enumerate(lines):
            rate = next((rate for limit, rate in self.brackets if amount <= limit), 40)
            result[f"{{region}}/{{number}}"] = amount * rate // 100
        return result
'''


def tax() -> str:
    """The large file, whose last class has a method of 55 lines."""
    text = '"""Taxes of all regions."""\n\nDEFAULT_RATE = 20\nREGIONS = ["north", "south"]\n'
    for n in range(2, 14):
        text += REGION.format(n=n)
        for word in ("base", "import", "export", "luxury", "reduced", "exempt", "local"):
            text += RATE.format(n=n, word=word)
    text += f"\n\nclass Schedule:\n    brackets = [(1000, 10), (5000, 20)]\n\n{LONG}"
    return text + "".join(COLLECT.format(n=n) for n in range(2, 14))


def desk(n: int) -> str:
    """A module that uses the method of the ledger two or three times, and that of the journal four times."""
    uses = [f'ledger.{METHOD}("cash", {n}, "first of {n}")', f'ledger.{METHOD}("sales", sum(amounts))']
    uses += [f'ledger.{METHOD}("tax", sum(amounts) // 5)'] * (n % 2)
    uses += [f'journal.{METHOD}("cash", "note {k} of desk {n}")' for k in range(4)]
    body = "".join(f"    {use}\n" for use in uses)
    return (
        f'"""Desk {n}."""\n\nfrom shopkit.core.journal import Journal\n'
        "from shopkit.core.ledger import Ledger\n\n\n"
        f"def settle_{n}(ledger: Ledger, journal: Journal, amounts: list[int]) -> int:\n{body}"
        '    return ledger.balance("cash")\n'
    )


def below(folder: str, top: str, bases: dict[str, str], body: str) -> dict[str, str]:
    """A module for each class below a base."""
    files = {}
    for name, base in bases.items():
        source = f"{top.lower()} import {top}" + ("" if base == top else f" as {base}")
        if base in bases:
            source = f"{base.lower()} import {base}"
        text = f'"""{name}."""\n\nfrom shopkit.{folder}.{source}\n\n\nclass {name}({base}):\n'
        files[f"shopkit/{folder}/{name.lower()}.py"] = text + body.format(len(name))
    return files


def chain(n: int) -> str:
    """A module of the large project; some have classes below others that share a name with ours."""
    text = f'"""Chain {n}."""\n\nfrom shopkit.core.journal import Journal\n'
    text += "".join(STEP.format(n=n, k=k) for k in range(8))
    if n % 7 == 0:
        text += f'\n\ndef note_{n}(journal: Journal) -> str:\n    return journal.{METHOD}("sales", "{n}")\n'
    for step, start, base, name in ((36, 0, "TaxRule", "Fee"), (60, 5, "Batched", "Job")):
        if n == start:
            text += f"\n\nclass {base}:\n    pass\n"
        elif n % step == start:
            text += f"\n\nclass {name}{n}({base}):\n    def price(self, amount: int) -> int:\n"
            text += f"        return amount + {n}\n"
            text = text.replace("\n\n\n", f"\nfrom shopkit.services.chain{start:03} import {base}\n\n\n", 1)
    return text


def files(scale: int) -> dict[str, str]:
    """The files of the project with their texts."""
    parts = re.split(r"^==> (.+)\n", Path(__file__).with_name("shop.txt").read_text(), flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True)) | {TAX: tax()}
    found |= {f"shopkit/services/desk{n:02}.py": desk(n) for n in range(USERS)}
    price = "    def price(self, amount: int) -> int:\n        return amount - {}\n"
    found |= below("pricing", "Rule", RULES, price) | below("storage", "Handler", HANDLERS, "    cost = {}\n")
    for name, callee in CALLERS.items():
        folder = "services" if callee in CALLERS else "pricing.rule"
        source = f"shopkit.services.{callee}" if callee in CALLERS else f"shopkit.{folder}"
        text = f'"""{name}."""\n\nfrom {source} import {callee}\n\n\ndef {name}(amount: int) -> int:\n'
        found[f"shopkit/services/{name}.py"] = text + f"    return {callee}(amount) + {len(name)}\n"
    journal = found["shopkit/core/journal.py"]
    for name in ("Diary", "Notebook", *(f"Notebook{n}" for n in range(2, 2 * scale - 1))):
        copy = journal.replace("Journal", name)
        found[f"shopkit/core/{name.lower()}.py"] = (
            copy if name.isalpha() else copy.replace("reconcile", "compare")
        )
    for n in range(HEADERS):
        steps = "".join(STEP.format(n=n, k=k) for k in range(8))
        found[f"shopkit/core/mod{n:02}.py"] = f'"""Module {n}."""\n{YEAR}\n{steps}'
    found |= {
        f"shopkit/{folder}__init__.py": ""
        for folder in ("", "core/", "util/", "services/", "pricing/", "storage/")
    }
    return found | {f"shopkit/services/chain{n:03}.py": chain(n) for n in range(CHAINS * (scale - 1))}


def write(folder: Path, texts: dict[str, str]) -> None:
    """Write a project."""
    for path, text in texts.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def tree(folder: Path) -> dict[str, str]:
    """The text files of a project, without output of tests."""
    found = sorted(path for path in folder.rglob("*") if path.suffix in {".py", ".toml", ".md"})
    return {
        str(path.relative_to(folder)): path.read_text() for path in found if ".pytest_cache" not in path.parts
    }
