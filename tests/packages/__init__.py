"""Packages that change what Django's parts do, each as it is released."""
