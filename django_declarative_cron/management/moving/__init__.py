"""Reading what other schedulers were told, wherever each keeps it: one module per rival."""
