"""What Django finds here, it offers as commands."""
