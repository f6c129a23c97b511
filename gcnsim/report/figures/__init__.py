"""Figures, one file each: `NAME_data` returns the data to plot, `NAME_figure` draws it in the light theme."""
