"""What other schedulers were told, as entries of ours."""
