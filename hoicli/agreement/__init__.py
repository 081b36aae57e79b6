"""How well raters agree with each other, and a metric with people."""
