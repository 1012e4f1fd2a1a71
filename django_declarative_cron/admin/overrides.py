"""What people did to tasks, when and why."""

from __future__ import annotations

from typing import ClassVar

from ..models import TaskOverride
from .readonly import Columns, HistoryPaginator, ReadOnlyAdmin, instant, labelled

created = instant(TaskOverride, "created_at")
until = instant(TaskOverride, "until")
ended = instant(TaskOverride, "ended_at")


class TaskOverrideAdmin(ReadOnlyAdmin):
    """Show operators' acts; they outlive the tasks they were done to."""

    list_display: Columns = [created, "kind", "task_name", "author", labelled(until), "note"]
    list_display_links = ["kind"]
    list_filter = ["kind"]
    search_fields = ["task_name", "author", "note"]
    ordering = ["-id"]
    sortable_by = ()
    paginator = HistoryPaginator
    fields: ClassVar[Columns] = ["kind", "task_name", created, "author", "note", until, ended]
