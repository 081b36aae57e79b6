"""Input and output of bytes: streams, files, progress, processes and signals."""
