"""How results look: tables in several notations."""
