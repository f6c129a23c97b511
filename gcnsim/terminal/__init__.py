"""Text on a terminal, drawn by rich, which is imported once there is something to draw: tables and a live line."""
