"""One module for each subcommand: it declares the options, calls the library once, and writes rows or records."""
