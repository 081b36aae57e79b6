"""Classes in place of the evaluators that repositories copy: released constructors, calls, results, printed lines.

    from hoicli.compat.qpic import HICOEvaluator     # was: from datasets.hico_eval import HICOEvaluator

One module for each released evaluator; nothing is imported before it is asked for, and nothing of torch at all."""
