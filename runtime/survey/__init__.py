"""A survey of a cluster: all measurements for predicting it and for validating the predictions, in one folder.

A rule, written before anything runs, states which runs are trained and which of them a calibration may use. Worker 0
decides the next run, by the rule and the remaining time, and is the only one that writes; nothing here makes
predictions. Only workers import modules that need torch.
"""

from runtime.survey.rule import ONE_WORKER, RULE, GeneratedGraph, SurveyRequest, read_rule

__all__ = ["ONE_WORKER", "RULE", "GeneratedGraph", "SurveyRequest", "read_rule"]
