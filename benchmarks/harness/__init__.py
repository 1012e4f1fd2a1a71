"""What every part shares: contenders in turns, each in its own process, and what came of it."""
