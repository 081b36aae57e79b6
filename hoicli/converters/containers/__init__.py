"""What foreign files are kept in: pickles, MATLAB files, NumPy archives, JSON and Python literals."""
