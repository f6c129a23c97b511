"""The dashboard: pages in a browser, served from this machine, for the same questions as the command line.

It is a user interface like the command line. `state` reads a page's address, `answers` and `jobs` call `gcnsim.api` in
separate processes, `pages` show the results, and `guard` controls access. Assumption: few users, one machine, no
database; uploads and results are in a temporary folder that is removed with the server.
"""
