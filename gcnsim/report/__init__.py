"""Reports: a what-if payload as terminal table, CSV, figures and an offline page; a timeline as a Chrome trace."""
