"""What every package builds on: units, fields, errors, ids, random streams, files, terminal and processes."""
