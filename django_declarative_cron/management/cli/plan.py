"""``cron plan``: show the changes that a scheduler start would make (dry run)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.declarations.declaration import Declaration
from ...core.reconcile import Override, Plan
from ...formatting import format_duration
from ...store.reconcile import plan_for
from .deployment_scope import Scope, declared
from .subcommand import Context, Options, Subcommand, add_format, write
from .terminal import Cell, Terminal

_HEADER = ("CHANGE", "TASK", "DETAILS")
_NEW, _OVERRIDDEN = "+ new", "~ overridden"
_PRESERVED, _REMOVED = "= preserved", "- removed"
_MEANINGS = {
    _NEW: "state begins; only the current minute may be due",
    _OVERRIDDEN: "state begins anew; only the current minute may be due",
    _REMOVED: "its history and audit log stay",
    _PRESERVED: "state is kept",
}
_ROLES = {_NEW: "SUCCESS", _OVERRIDDEN: "WARNING", _REMOVED: "ERROR"}


def _answer(context: Context, options: Options) -> None:
    scope = Scope.current()
    plan = plan_for(scope.using, scope.deployment, declared())
    write(context, options, PlanReport(plan, _changed_keys(scope, plan)))


def _changed_keys(scope: Scope, plan: Plan) -> dict[str, list[str]]:
    """Return the changed keys of each task that would be updated in place."""
    updated = {declaration.name: declaration for declaration in plan.updated}
    if not updated:
        return {}
    stored = scope.tasks.values_list("name", "declaration")
    return {name: _differing(updated[name], before) for name, before in stored if name in updated}


def _differing(declaration: Declaration, before: Any) -> list[str]:
    old = before if isinstance(before, dict) else {}
    return [key for key, value in declaration.as_data().items() if old.get(key) != value]


@dataclass(frozen=True, slots=True)
class PlanReport:
    """The changes that an initialisation would make."""

    plan: Plan
    changed: Mapping[str, list[str]]

    def as_dict(self) -> dict[str, Any]:
        return {
            "is_empty": self.plan.is_empty,
            "new": [_declaration_as_dict(declaration) for declaration in self.plan.new],
            "overridden": [
                {
                    "name": override.declaration.name,
                    "changes": {
                        field: {"old": old, "new": new}
                        for field, (old, new) in override.changes().items()
                    },
                }
                for override in self.plan.overridden
            ],
            "preserved": [
                {"name": declaration.name, "changes": self.changed.get(declaration.name, [])}
                for declaration in self.plan.preserved
            ],
            "orphaned": [{"name": name} for name in self.plan.orphaned],
        }

    def render(self, terminal: Terminal) -> None:
        plan, entries = self.plan, list(self._entries())
        terminal.remark(
            f"{len(plan.new)} new, {len(plan.overridden)} overridden, "
            f"{len(plan.preserved)} preserved, {len(plan.orphaned)} removed."
        )
        if plan.is_empty:
            terminal.remark("Nothing would change.")
        else:
            applied_by = "`python manage.py runscheduler` makes the changes"
            terminal.remark(f"Nothing was written: {applied_by}.")
        if entries:
            terminal.remark()
            terminal.table([_row(terminal, *entry) for entry in entries], _HEADER)
            terminal.remark()
            present = {change for change, _, _ in entries}
            for change, text in _MEANINGS.items():
                if change in present:
                    terminal.remark(f"{change}: {text}")

    def _entries(self) -> Iterator[tuple[str, str, list[str]]]:
        for declaration in self.plan.new:
            yield _NEW, declaration.name, [_schedule(declaration)]
        for override in self.plan.overridden:
            yield _OVERRIDDEN, override.declaration.name, list(_override_lines(override))
        for name in self.plan.orphaned:
            yield _REMOVED, name, []
        for declaration in self.plan.updated:
            keys = ", ".join(self.changed.get(declaration.name, []))
            yield _PRESERVED, declaration.name, [_schedule(declaration), f"changed: {keys}"]
        for declaration in self.plan.unchanged:
            yield _PRESERVED, declaration.name, [_schedule(declaration)]


def _row(terminal: Terminal, change: str, name: str, details: list[str]) -> list[Cell]:
    paint = terminal.paint(_ROLES.get(change))
    return [Cell((change,), paint), Cell((name,)), Cell(tuple(details))]


def _schedule(declaration: Declaration) -> str:
    return f"{declaration.cron}  {declaration.timezone}"


def _override_lines(override: Override) -> Iterator[str]:
    for field, (old, new) in override.changes().items():
        if field == "retry_delay_ms":
            yield f"retry_delay: {_delay(old)} → {_delay(new)}"
        else:
            yield f"{field}: {old} → {new}"


def _delay(milliseconds: float | None) -> str:
    return "by a policy" if milliseconds is None else format_duration(milliseconds / 1000)


def _declaration_as_dict(declaration: Declaration) -> dict[str, Any]:
    return {
        "name": declaration.name,
        "cron": declaration.cron,
        "timezone": declaration.timezone,
        "retry_delay_ms": declaration.retry_delay_ms,
        "callback": declaration.target.text,
    }


PLAN = Subcommand("plan", "preview the changes of a start of the scheduler", add_format, _answer)
