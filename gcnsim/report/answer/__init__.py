"""A what-if answer in a terminal, a notebook and a CSV file."""
