"""Bytes in and out: streams, whole files or none, progress, processes and signals."""
