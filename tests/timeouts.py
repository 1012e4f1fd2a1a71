"""The timeout of the tests' waits, in seconds.

A wait ends as soon as the expected state is reached, so the timeout is generous: a busy machine
must not fail a test.
"""

TIMEOUT = 120.0
