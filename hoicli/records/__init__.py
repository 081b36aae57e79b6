"""One line of a stream: image records, result rows and caveats, parsed and checked."""
