"""A project whose users have a UUID as key and no user name."""
