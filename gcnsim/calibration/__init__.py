"""Fit the figures of one machine to micro-benchmarks and a few recorded runs."""

from gcnsim.calibration.fit import calibrate
from gcnsim.calibration.gpu import fit_gpu
from gcnsim.calibration.laws import fit_laws
from gcnsim.calibration.runs import refine

__all__ = ["calibrate", "fit_gpu", "fit_laws", "refine"]
