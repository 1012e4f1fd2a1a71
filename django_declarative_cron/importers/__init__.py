"""Convert schedules of other schedulers to entries of ``SCHEDULED_TASKS``, for ``cron import``.

One module per scheduler reads where that scheduler keeps its tasks, and converts each of them.
``result`` has the entries, with every difference in meaning, and their text. ``callables`` has
callbacks for calls that a declaration cannot express; their paths stand in users' settings.
"""
