"""A real browser on our pages: Debian's chromium, driven through a pipe."""
