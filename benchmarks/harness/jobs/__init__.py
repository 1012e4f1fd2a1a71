"""An app with nothing in it but what every contender calls: a function that does nothing."""
