"""Calibration records as files: what was measured and fitted on one machine, and the settings that it covers."""
