"""What Python has besides the commands: evaluation of batches, the outputs of queries, corruption in memory."""
