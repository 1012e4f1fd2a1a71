"""What runs: clocks, the loop, signs of life, and the runners that call callbacks."""
