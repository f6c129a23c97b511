"""A what-if answer as one offline page, and the figures on it."""
