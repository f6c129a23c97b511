"""The fields of the questions (what-if, recommend), each with its rule, default and help.

A field is declared once. Python keywords, command-line options and their help are generated from it.
"""

from gcnsim.questions.option import LIST, PAIRS, WHOLE, Option, flag, listed, plain, split, words
from gcnsim.questions.question import PRICES, Question, field_value, keywords, options
from gcnsim.questions.recommend import Recommend
from gcnsim.questions.what_if import WhatIf

__all__ = [
    "LIST",
    "PAIRS",
    "PRICES",
    "WHOLE",
    "Option",
    "Question",
    "Recommend",
    "WhatIf",
    "field_value",
    "flag",
    "keywords",
    "listed",
    "options",
    "plain",
    "split",
    "words",
]
