"""The rules of the design as functions: a source file in, what breaks the rule out."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

PACKAGE = "django_declarative_cron"

# Each group may import the groups before it; parts of one group do not know each other.
ORDER = (
    ("cron",),
    ("formatting",),
    ("core",),
    (
        "conf",
        "callables",
        "handlers",
        "django_tasks",
        "calendars",
        "models",
        "fields",
        "signals",
    ),
    ("store",),
    ("runtime",),
    ("monitoring",),
    ("admin", "management", "http"),
)
EVERYWHERE = {"exceptions", "__init__"}
# One module that a part may import out of one it may not, and why.
LOANS = {
    ("checks", "runtime.clock"): "a warning about the next occurrences starts at the present",
    ("checks", "runtime.forking"): "what forks knows what a system needs for that",
    (
        "checks",
        "store.overview",
    ): "how long runs took is asked where a check may ask a database",
}
# Parts beside the order, and parts that may read a little more than it says.
BESIDE = {
    "exceptions": set(),
    "theory": {"cron", "core"},
    "conf": {"callables", "calendars"},
    "callables": {"handlers", "django_tasks"},
    "models": {"fields"},
    "migrations": {"models", "fields"},
    "checks": {
        "conf",
        "callables",
        "handlers",
        "django_tasks",
        "calendars",
        "core",
        "cron",
        "formatting",
    },
    "management": {"theory", "importers"},
    "importers": {"conf", "fields", "core", "formatting", "cron", "exceptions"},
    "apps": {"checks", "signals", "monitoring"},
}
ANYTHING = {"testing", "__init__"}
PURE = {"cron", "formatting", "core", "theory", "exceptions"}

NOT_PURE = {
    *("django", "time", "logging", "os", "io", "pathlib", "shutil", "tempfile", "socket"),
    *("subprocess", "threading", "multiprocessing", "concurrent", "asyncio", "signal"),
    *("sqlite3", "psycopg", "urllib", "http"),
}
# Beneath one of those, and pure all the same.
PURE_ALL_THE_SAME = ("urllib.parse",)
UNSAFE_MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle"}
UNSAFE_CALLS = {"eval", "exec"}

WALL_CLOCK = {
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    "datetime.date.today",
    *(f"django.utils.timezone.{name}" for name in ("now", "localdate")),
    *(f"time.{name}" for name in ("time", "time_ns", "gmtime", "localtime", "ctime")),
}
DATABASE_CLOCK = {"django.db.models.functions.Now", "django.db.models.functions.datetime.Now"}
SECONDS = {
    *(f"time.{name}" for name in ("monotonic", "monotonic_ns", "perf_counter", "sleep")),
    "asyncio.sleep",
}

# Only models and querysets have these.
WRITES = {
    *("save", "save_base", "delete", "bulk_create", "bulk_update"),
    *("get_or_create", "update_or_create", "select_for_update", "cursor"),
    *("asave", "adelete", "acreate", "aupdate", "abulk_create", "abulk_update"),
    *("aget_or_create", "aupdate_or_create"),
}
# Dictionaries and others have these too: they are writes on what came from a manager.
QUERYSET_WRITES = {"create", "update"}
MANAGERS = {"objects", "_default_manager", "_base_manager", "queryset", "qs"}
QUERYSETS = {"QuerySet", "get_queryset"}

LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}

# Those whose names are no words of other options.
OVERLAP_POLICIES = {"coalesce", "cancel_previous", "enqueue"}

LONGEST_FILE = 500
LONGEST_FUNCTION = 40

# What a file may do although a rule forbids it, and why.
ALLOWED = {
    ("settings", "conf.py"): "it is the one reader of settings",
    ("settings", "fields.py"): "a field stores instants alike with and without USE_TZ",
    ("clock", "runtime/clock.py"): "it is the clock",
    ("clock", "store/database.py"): "it asks the database for its time on behalf of the clock",
    ("log", "signals.py"): "it words the log lines",
}


@dataclass(frozen=True)
class Source:
    """One file of the package, named by its path inside it (``cron/posix.py``)."""

    name: str
    text: str

    @property
    def part(self) -> str:
        return self.name.partition("/")[0].removesuffix(".py")

    @cached_property
    def nodes(self) -> dict[type[ast.AST], list[Any]]:
        """Every node by its type."""
        found: dict[type[ast.AST], list[Any]] = defaultdict(list)
        for node in ast.walk(ast.parse(self.text)):
            found[type(node)].append(node)
        return found

    def of(self, *kinds: type[ast.AST]) -> Iterator[Any]:
        """Yield the nodes of some types."""
        return chain.from_iterable(self.nodes[kind] for kind in kinds)

    @cached_property
    def imports(self) -> list[tuple[int, str]]:
        """Every import as line and absolute dotted name."""
        nodes = self.of(ast.Import, ast.ImportFrom, ast.Call)
        return [found for node in nodes for found in self._imported(node)]

    @cached_property
    def origins(self) -> dict[str, str]:
        """What the names bound by imports stand for."""
        origins: dict[str, str] = {}
        for node in self.of(ast.Import, ast.ImportFrom):
            if isinstance(node, ast.Import):
                origins.update({name.asname: name.name for name in node.names if name.asname})
            else:
                base = self._absolute(node)
                origins.update(
                    {name.asname or name.name: f"{base}.{name.name}" for name in node.names}
                )
        return origins

    def _imported(self, node: ast.AST) -> Iterator[tuple[int, str]]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.lineno, f"{self._absolute(node)}.{alias.name}"
        elif isinstance(node, ast.Call) and _last(node.func) in {"import_module", "import_string"}:
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        here = [PACKAGE, *self.name.split("/")]
        return ".".join([*here[: len(here) - node.level], *filter(None, [node.module])])

    def resolve(self, node: ast.AST) -> str:
        """Return the dotted name an expression stands for, its imports followed."""
        first, _, rest = _dotted(node).partition(".")
        origin = self.origins.get(first, first)
        return f"{origin}.{rest}" if rest else origin


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return node.id if isinstance(node, ast.Name) else ""


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def may_import(part: str) -> set[str] | None:
    """Return the parts that ``part`` may import, or None for any."""
    if part in ANYTHING:
        return None
    left = BESIDE.get(part, set()) | EVERYWHERE | {part}
    for position, group in enumerate(ORDER):
        if part in group:
            return left.union(*ORDER[:position])
    if part not in BESIDE:
        raise LookupError(f"{part} has no place in the layout: give it one in ORDER or BESIDE.")
    return left


def imports(source: Source) -> Iterator[str]:
    """Hold the order of the layout."""
    allowed = may_import(source.part)
    for line, dotted in source.imports:
        package, *inner = dotted.split(".")
        if package == PACKAGE and inner and allowed is not None:
            target = inner[0] if inner[0] in _parts() else "__init__"
            loan = (source.part, ".".join(inner[:2]))
            if target not in allowed and loan not in LOANS:
                yield f"{line}: {source.part} imports {target}"


def _parts() -> set[str]:
    return {*EVERYWHERE, *ANYTHING, *BESIDE, *(part for group in ORDER for part in group)}


def purity(source: Source) -> Iterator[str]:
    """Keep Django, the clock and every other effect out of the core."""
    if source.part not in PURE:
        return
    for line, dotted in source.imports:
        is_pure = dotted.startswith(PURE_ALL_THE_SAME)
        if dotted.partition(".")[0] in NOT_PURE and not is_pure:
            yield f"{line}: {source.part} is pure and imports {dotted}"
    for node in source.of(ast.Call):
        if _dotted(node.func) in {"open", "print", "input"}:
            yield f"{node.lineno}: {source.part} is pure and calls {_dotted(node.func)}()"


def clock(source: Source) -> Iterator[str]:
    """Leave the time to the clock object, and the waiting to the runtime."""
    forbidden = WALL_CLOCK | DATABASE_CLOCK | (SECONDS if source.part != "runtime" else set())
    seen = set()
    for node in source.of(ast.Name, ast.Attribute):
        if (name := source.resolve(node)) in forbidden:
            seen.add((node.lineno, name))
    for node in source.of(ast.keyword):
        if node.arg in {"auto_now", "auto_now_add"}:
            seen.add((node.lineno, node.arg))
    for line, name in sorted(seen):
        yield f"{line}: {name} is for the clock"


def settings(source: Source) -> Iterator[str]:
    """Leave the settings to ``conf``."""
    for line, dotted in source.imports:
        if dotted == "django.conf" or dotted.startswith("django.conf.settings"):
            yield f"{line}: settings are read by conf"


def writes(source: Source) -> Iterator[str]:
    """Leave rows, row locks and SQL to ``store``."""
    if source.part in {"store", "migrations"}:
        return
    querysets = _queryset_names(source)
    for node in source.of(ast.Call):
        if not isinstance(node.func, ast.Attribute):
            continue
        name = node.func.attr
        if name in WRITES or (name in QUERYSET_WRITES and _is_queryset(node.func.value, querysets)):
            yield f"{node.lineno}: .{name}() is for store"


def _queryset_names(source: Source) -> set[str]:
    """Return the names that are bound to querysets somewhere in the file."""
    found = set(MANAGERS)
    for node in source.of(ast.arg):
        if node.annotation and re.search(r"\bQuerySet\b|\bManager\b", ast.unparse(node.annotation)):
            found.add(node.arg)
    for node in source.of(ast.Assign):
        if _is_queryset(node.value, found):
            found.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return found


def _is_queryset(node: ast.AST, names: set[str]) -> bool:
    """Tell whether a chain of attributes and calls starts at, or passes, a queryset."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(node, ast.Attribute) and node.attr in MANAGERS | QUERYSETS:
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id in names | QUERYSETS


def log(source: Source) -> Iterator[str]:
    """Let one file word the log lines."""
    for node in source.of(ast.Call):
        if isinstance(node.func, ast.Attribute):
            speaker = _last(node.func.value).strip("_")
            if node.func.attr in LEVELS and speaker in {"logger", "log", "logging"}:
                yield f"{node.lineno}: log lines are worded by signals"


def sizes(source: Source) -> Iterator[str]:
    """Keep files to one subject and functions to one screen."""
    if source.part == "migrations":
        return
    length = source.text.count("\n")
    if length > LONGEST_FILE:
        yield f"1: {length} lines, {LONGEST_FILE} at most"
    for node in source.of(ast.FunctionDef, ast.AsyncFunctionDef):
        length = node.end_lineno - node.lineno + 1
        if length > LONGEST_FUNCTION:
            yield f"{node.lineno}: {node.name} has {length} lines, {LONGEST_FUNCTION} at most"


def policies(source: Source) -> Iterator[str]:
    """Ask for the properties of an overlap policy: a new one has a name that nobody knows."""
    for node in source.of(ast.Compare, ast.MatchValue):
        for value in ast.walk(node):
            if isinstance(value, ast.Constant) and value.value in OVERLAP_POLICIES:
                yield f"{value.lineno}: {value.value} is asked for by name"


def unsafe(source: Source) -> Iterator[str]:
    """Run nothing that came as data."""
    for line, dotted in source.imports:
        if dotted.partition(".")[0] in UNSAFE_MODULES:
            yield f"{line}: {dotted} is unsafe"
    for node in source.of(ast.Call):
        if _dotted(node.func) in UNSAFE_CALLS:
            yield f"{node.lineno}: {_dotted(node.func)}() is unsafe"


Rule = Callable[[Source], Iterator[str]]
RULES: tuple[Rule, ...] = (imports, purity, clock, settings, writes, log, sizes, policies, unsafe)


def broken(source: Source) -> list[str]:
    """Return every rule that a file breaks, as ``rule file:line: what``."""
    return [
        f"{rule.__name__} {source.name}:{found}"
        for rule in RULES
        if (rule.__name__, source.name) not in ALLOWED
        for found in rule(source)
    ]
