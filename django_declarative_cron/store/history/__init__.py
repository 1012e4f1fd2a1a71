"""The stored history of a deployment as a trace of the theory (004), told row by row.

``reading`` asks the database and gives values. ``presence`` says when the deployment had a
scheduler: to the theory all its instances are one, which starts with the first and ends with
the last of them. ``absence`` says which tasks are out of its sight. ``telling`` puts them in
order and words the event records.
"""

from .reading import read
from .telling import History

__all__ = ["History", "read"]
