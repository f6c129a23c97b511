"""What predictions rest on: recorded runs as questions, calibration, validation, comparison, published tables."""
