"""The running parts: clocks, the loop, heartbeats, and the runners that call callbacks."""
