"""Outputs of detectors as the arrays of `Evaluator.update`: a module for each family of networks, and the rules by
which released code scores and ranks triplets, which the drop-in evaluators of `hoicli.compat` share."""
