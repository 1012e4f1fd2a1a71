"""The judge of any history: the axioms of the theory (004) over a trace. Pure.

``records`` reads what a trace says, ``trace`` numbers its positions and ``pulses`` adds what it
leaves out. ``letter`` and ``repaired`` say what holds at a position, in the theory's words, on
the memories of ``operators``. ``axioms`` object; ``checker`` goes through it all once.
"""

from .checker import check, judge
from .records import TraceError
from .verdict import Late, Verdict, Violation

__all__ = ["Late", "TraceError", "Verdict", "Violation", "check", "judge"]
