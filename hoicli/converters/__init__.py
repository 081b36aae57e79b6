"""Foreign formats to records and back; ground truth that has a name, and the copy of it that this user keeps."""
