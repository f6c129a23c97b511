"""The files a graph is read from and written to, a format each; `layouts` has those of published datasets."""
