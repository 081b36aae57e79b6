"""How sure a number is: resampled test sets, intervals, and paired comparisons of models."""
