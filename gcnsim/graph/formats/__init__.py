"""Graph file formats for reading and writing, one file each; `layouts` has those of published datasets."""
