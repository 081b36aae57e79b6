"""How a function becomes a subcommand and a call from Python: its options, their checks, its inputs and its result."""
