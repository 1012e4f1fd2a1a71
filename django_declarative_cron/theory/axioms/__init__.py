"""The axioms, one each, named as in the theory (004).

Functions check one position, or one event of it; classes keep a little state per task. S1 and
S4 use the operator Y, so they are checked before the state moves to the position.
"""

from .environment import (
    ea1_busy_crashing,
    ea2_actions_require_work,
    ea3_no_simultaneous_actions,
    ea4_unlimited_freeze,
    ea5_unlimited_dues,
    ea6_crash_end_consistency,
)
from .liveness import (
    Bound,
    L1ObligationFulfillment,
    L2InitializationCompletes,
    L3StopCompletes,
)
from .safety import (
    S2ConservationOfStarts,
    s1_start_safety,
    s3_stop_end_consistency,
    s4_ends_follow_starts,
    s5_registration_consistency,
)

__all__ = [
    "Bound",
    "L1ObligationFulfillment",
    "L2InitializationCompletes",
    "L3StopCompletes",
    "S2ConservationOfStarts",
    "ea1_busy_crashing",
    "ea2_actions_require_work",
    "ea3_no_simultaneous_actions",
    "ea4_unlimited_freeze",
    "ea5_unlimited_dues",
    "ea6_crash_end_consistency",
    "s1_start_safety",
    "s3_stop_end_consistency",
    "s4_ends_follow_starts",
    "s5_registration_consistency",
]
