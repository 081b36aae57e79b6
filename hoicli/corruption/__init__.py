"""RoHOI's 20 corruptions, five severities each, and those that other packages add: the recipe `hoicli-1`."""
