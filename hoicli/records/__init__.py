"""One line checked: image records, result rows, and what they owe to where they came from."""
