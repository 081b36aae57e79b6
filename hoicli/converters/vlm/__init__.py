"""What vision-language models answer, and how they are asked."""
