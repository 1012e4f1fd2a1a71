"""System checks of the declarations and options, with stable ids and hints."""
