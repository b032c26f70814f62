"""How long a controller takes until an entry is known to be in force."""


def measure(world):
    """Nothing yet."""
