"""Named ground truth: where a benchmark's annotations are published, and the copy that this user keeps."""
