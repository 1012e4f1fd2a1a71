"""What every part shares: contenders in turns, each in a process of its own, and what came of it."""
