"""The stored history of a deployment as a trace of the theory (004), row by row.

``reading`` queries the database and returns values. ``values`` says when the deployment had a
scheduler: to the theory all its instances are one, which starts with the first and ends with
the last of them. ``gaps`` says which tasks are out of its sight. ``builder`` puts them in order
and words the event records.
"""

from .builder import History
from .reading import read

__all__ = ["History", "read"]
