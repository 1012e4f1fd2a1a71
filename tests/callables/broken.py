"""A module that raises while it is imported, and counts how often it is tried."""

from tests.callables import jobs

jobs.calls.append(("broken imported",))
raise RuntimeError("no connection")
