"""How long the tests wait for what has to come.

It costs nothing where it comes, and is long enough for a machine that has much else to do.
"""

PATIENCE = 120.0
