"""Input that nobody thought of: what is read from outside, by a fuzzer that follows the branches.

``targets`` says what must hold for any bytes, ``corpus/`` keeps inputs that were interesting once,
``python -m tests.fuzz`` looks for more. The ordinary tests go through the corpus.
"""
