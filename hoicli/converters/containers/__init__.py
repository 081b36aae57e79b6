"""Containers of foreign files: pickles, MATLAB files, NumPy archives, JSON and Python literals."""
