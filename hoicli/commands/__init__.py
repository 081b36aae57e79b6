"""A module per subcommand: options in, one library call, rows or records out."""
