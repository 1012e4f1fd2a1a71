"""Pictures as SVG, from values: no clock, no database, no style that a strict CSP refuses.

What colour says is said by height or shape as well, and beside each picture stands a table.
"""
