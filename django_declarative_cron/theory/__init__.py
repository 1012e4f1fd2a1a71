"""The checker of histories: the axioms of the theory (004) over a trace. Pure.

``events`` reads the records of a trace, ``trace`` numbers its positions, and ``derived_events``
adds the pulses that it does not state. ``operational`` computes the state at a position, as the
scheduler reads the theory. ``axioms`` find violations, ``checker`` applies them in one pass, and
``report`` has the results.
"""

from .checker import check, judge
from .events import TraceError
from .report import Late, Verdict, Violation

__all__ = ["Late", "TraceError", "Verdict", "Violation", "check", "judge"]
