"""From what other schedulers are told to entries of ``SCHEDULED_TASKS``; pure.

One module per rival takes plain data, which ``management.moving`` reads from where that rival
keeps it, and gives entries with every difference in meaning.
"""
