"""A survey of a cluster: what it takes to predict it and to judge the predictions, in one folder.

A rule, written before anything runs, says which runs are trained and which of them a calibration may see. Worker 0
decides what is next, by the rule and the time that is left, and alone writes; nothing here predicts anything. Modules
that import torch are imported by the workers alone.
"""

from runtime.survey.rule import ONE_WORKER, RULE, GeneratedGraph, SurveyRequest, read_rule

__all__ = ["ONE_WORKER", "RULE", "GeneratedGraph", "SurveyRequest", "read_rule"]
