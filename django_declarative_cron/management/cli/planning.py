"""``cron plan``: what starting a scheduler would change, without changing it."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from ...core.declarations.declaration import Declaration
from ...core.reconcile import Override, Plan
from ...store.reconcile import plan_for
from .scope import Scope, declared
from .subcommand import Context, Options, Subcommand, add_format
from .table import Cell
from .terminal import Terminal

_HEADER = ("CHANGE", "TASK", "DETAILS")
_NEW, _OVERRIDDEN = "+ new", "~ overridden"
_PRESERVED, _ORPHANED = "= preserved", "- orphaned"
_MEANINGS = {
    _NEW: "state begins; only the current minute may be due",
    _OVERRIDDEN: "state starts afresh; only the current minute may be due",
    _ORPHANED: "row is removed; its history and people's acts stay",
    _PRESERVED: "state is kept",
}
_ROLES = {_NEW: "SUCCESS", _OVERRIDDEN: "WARNING", _ORPHANED: "ERROR"}

Changed = Mapping[str, list[str]]


def _arguments(parser: ArgumentParser) -> None:
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    scope = Scope.current()
    plan = plan_for(scope.using, scope.deployment, declared())
    changed = _changed(scope, plan)
    if options["format"] == "json":
        context.terminal.data(_record(plan, changed))
    else:
        _say(context.terminal, plan, changed)


def _changed(scope: Scope, plan: Plan) -> Changed:
    """Name the keys that differ in the tasks that are updated in place."""
    updated = {declaration.name: declaration for declaration in plan.updated}
    if not updated:
        return {}
    stored = scope.tasks.values_list("name", "declaration")
    return {name: _differing(updated[name], before) for name, before in stored if name in updated}


def _differing(declaration: Declaration, before: Any) -> list[str]:
    old = before if isinstance(before, dict) else {}
    return [key for key, value in declaration.as_data().items() if old.get(key) != value]


def _say(terminal: Terminal, plan: Plan, changed: Changed) -> None:
    entries = list(_entries(plan, changed))
    if entries:
        terminal.table([_row(terminal, *entry) for entry in entries], _HEADER)
        terminal.say()
        present = {change for change, _, _ in entries}
        meanings = [(change, text) for change, text in _MEANINGS.items() if change in present]
        terminal.table([[Cell((change,)), Cell((text,))] for change, text in meanings])
        terminal.say()
    terminal.say(
        f"{len(plan.new)} new, {len(plan.overridden)} overridden, "
        f"{len(plan.preserved)} preserved, {len(plan.orphaned)} orphaned."
    )
    if plan.is_empty:
        terminal.say("Nothing would change.")
    else:
        terminal.say("Nothing was written; `python manage.py runscheduler` does it at its start.")


def _row(terminal: Terminal, change: str, name: str, details: list[str]) -> list[Cell]:
    paint = terminal.paint(_ROLES[change]) if change in _ROLES else None
    return [Cell((change,), paint), Cell((name,)), Cell(tuple(details))]


def _entries(plan: Plan, changed: Changed) -> Iterator[tuple[str, str, list[str]]]:
    for declaration in plan.new:
        yield _NEW, declaration.name, [_schedule(declaration)]
    for override in plan.overridden:
        yield _OVERRIDDEN, override.declaration.name, list(_override_lines(override))
    for name in plan.orphaned:
        yield _ORPHANED, name, []
    for declaration in plan.updated:
        keys = ", ".join(changed.get(declaration.name, []))
        details = [_schedule(declaration), f"changed: {keys}"]
        yield _PRESERVED, declaration.name, details
    for declaration in plan.unchanged:
        yield _PRESERVED, declaration.name, [_schedule(declaration)]


def _schedule(declaration: Declaration) -> str:
    return f"{declaration.cron}  {declaration.timezone}"


def _override_lines(override: Override) -> Iterator[str]:
    for field, (old, new) in override.changes().items():
        if field == "retry_delay_ms":
            yield f"retry_delay: {_delay(old)} → {_delay(new)}"
        else:
            yield f"{field}: {old} → {new}"


def _delay(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "by a policy"
    return str(timedelta(milliseconds=milliseconds))


def _record(plan: Plan, changed: Changed) -> dict[str, Any]:
    return {
        "is_empty": plan.is_empty,
        "new": [_declaration(declaration) for declaration in plan.new],
        "overridden": [
            {
                "name": override.declaration.name,
                "changes": {
                    field: {"old": old, "new": new}
                    for field, (old, new) in override.changes().items()
                },
            }
            for override in plan.overridden
        ],
        "preserved": [
            {"name": declaration.name, "changes": changed.get(declaration.name, [])}
            for declaration in plan.preserved
        ],
        "orphaned": [{"name": name} for name in plan.orphaned],
    }


def _declaration(declaration: Declaration) -> dict[str, Any]:
    return {
        "name": declaration.name,
        "cron": declaration.cron,
        "timezone": declaration.timezone,
        "retry_delay_ms": declaration.retry_delay_ms,
        "callback": declaration.target.text,
    }


PLAN = Subcommand(
    "plan",
    "show what starting a scheduler would change",
    _arguments,
    _answer,
)
