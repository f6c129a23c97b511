"""The pages: what each shows, and what it asks."""
