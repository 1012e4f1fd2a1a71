"""Schedulers as real processes, and everything that can befall them.

``python -m tests.processes.chaos`` (``tox -e chaos``) runs it for as long as it is told to and
prints what came of it; ``test_chaos.py`` runs a short form. What happened is judged three ways:

- by what the callbacks wrote down themselves, outside the database (``judges``),
- by the rows, occurrence by occurrence (``judges``),
- by the axioms of the theory (``cron verify``).
"""
