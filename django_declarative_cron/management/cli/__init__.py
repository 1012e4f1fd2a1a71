"""The parts of ``manage.py cron``: one module per subject, each ending in its subcommands."""
