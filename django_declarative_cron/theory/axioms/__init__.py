"""The axioms, one each, named as in the theory (004).

Functions check one position, or one event of it; classes keep a little state per task. S1 and
S4 use the operator Y, so they are checked before the state moves to the position, all others
after it.
"""
