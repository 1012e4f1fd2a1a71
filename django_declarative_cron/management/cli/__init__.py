"""The subcommands of ``manage.py cron``, one module each, and their shared parts."""
