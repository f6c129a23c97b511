"""Figures, one file each: `NAME_data` gives what is drawn as plain data, `NAME_figure` draws it in a theme."""
