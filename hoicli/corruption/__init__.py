"""20 corruptions after RoHOI's, five severities each, in four families: the recipe `hoicli-1`."""
