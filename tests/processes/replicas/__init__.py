"""A project with an empty ``default``, its tables on ``jobs``, and reads sent to a replica."""
