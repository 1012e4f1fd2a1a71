"""One task's state: what events make of it, and how it is carried as plain data."""

from .fold import TaskState, apply, first_coming, last_paused
from .stored import StoredState, deserialize, serialize

__all__ = [
    "StoredState",
    "TaskState",
    "apply",
    "deserialize",
    "first_coming",
    "last_paused",
    "serialize",
]
