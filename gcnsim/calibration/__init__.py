"""Figures of one machine, fitted to measurements of it and to a few recorded runs."""

from gcnsim.calibration.fit import calibrate
from gcnsim.calibration.gpu import fit_gpu
from gcnsim.calibration.links import fit_links
from gcnsim.calibration.runs import refine

__all__ = ["calibrate", "fit_gpu", "fit_links", "refine"]
