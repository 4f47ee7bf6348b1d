"""What a simulated world does not do."""


class WorldError(Exception):
    """A test asks for something that a simulated world does not have, or waits for what never happens."""
