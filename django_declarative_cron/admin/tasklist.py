"""The list of tasks: each row with its newest runs, and the overview above."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..models import Outcome, ScheduledTask
from ..runtime.clock import system_clock
from ..store.overview import Ran, oldest_recent, recent_runs
from ..store.queries import with_runs
from . import formats, overview
from .pictures import charts
from .readonly import NOTHING


class TaskChangeList(ChangeList):
    """Fetch the newest runs of the rows of one page together."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the rows of this page; what is asked of each is not asked of those before it."""
        super().get_results(request)
        self._request = request
        keys = list(self.result_list.values_list("pk", flat=True))
        now = system_clock.now()
        asked = with_runs(self.root_queryset, now).annotate(oldest_recent=oldest_recent())
        found: dict[Any, Any] = asked.in_bulk(keys)
        tasks = [found[key] for key in keys if key in found]
        oldest = {task.name or "": task.oldest_recent for task in tasks}
        runs = recent_runs(tasks, oldest, now)
        for task in tasks:
            task.recent = runs.get(task.name or "", [])
        self.result_list: Any = tasks

    def overview(self) -> dict[str, Any]:
        """Return what stands above the list."""
        page: Any = self.model_admin
        return overview.of(page, self._request, self.result_list)


@admin.display(description=_("recent runs"))
def recent(task: ScheduledTask) -> SafeString | str:
    """Show how the newest runs ended, and how long one takes."""
    runs: list[Ran] = getattr(task, "recent", [])
    if not runs:
        return NOTHING
    kinds = [run.outcome for run in runs]
    good = kinds.count(Outcome.SUCCEEDED)
    label = gettext("%(good)d of the last %(number)d succeeded") % {
        "good": good,
        "number": len(kinds),
    }
    picture = charts.strip(kinds, label)
    taken = typical_duration(runs)
    if not taken:
        return picture
    return format_html('{}<span class="ddc-more">{}</span>', picture, taken)


def typical_duration(runs: list[Ran]) -> str:
    """Return how long a run takes that succeeds: the median."""
    taken = [
        run.end - run.start
        for run in runs
        if run.end is not None and run.outcome == Outcome.SUCCEEDED
    ]
    if not taken:
        return ""
    return gettext("typically %(duration)s") % {
        "duration": formats.span(sorted(taken)[len(taken) // 2])
    }
