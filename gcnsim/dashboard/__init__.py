"""The dashboard: pages in a browser, served from this machine, that ask what the command line asks.

A door like the command line: `state` reads a page's address, `answers` and `jobs` ask `gcnsim.api` in processes of
their own, `pages` show what comes back, `guard` says who may see it. Assumption: few users, one machine, no database;
what is uploaded or answered lives in a temporary folder that ends with the server.
"""
