"""Run folders: the files of a training run, and a summary of its iterations."""
