"""What papers print: who evaluated, and their tables as result rows."""
