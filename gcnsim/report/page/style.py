"""The style sheet of the page: system fonts only, one column on a phone, ink-saving in print."""

from gcnsim.report.palette import ASSUMPTION, BUSY, INK, MUTED, RECOMMENDED

CSS = (
    f"""
:root {{ --ink: {INK}; --muted: {MUTED}; --line: #d9dfe5; --soft: #f5f7f9; --best: {RECOMMENDED};
  --assumed: {ASSUMPTION}; --busy: {BUSY}; }}
"""
    + """
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 24px 20px 56px; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0 0 20px; color: var(--best); max-width: 60ch;
  overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 36px 0 10px; }
.kicker { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: center; gap: 4px 16px;
  margin: 0 0 8px; color: var(--muted); overflow-wrap: anywhere; }
.badge { background: var(--ink); color: #fff; border-radius: 4px; padding: 2px 10px; font-size: .82rem;
  letter-spacing: .05em; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); gap: 16px; }
.card { border: 1px solid var(--line); border-radius: 8px; padding: 14px 18px; min-width: 0; }
.card h2 { margin: 0 0 6px; font-size: .85rem; color: var(--muted); letter-spacing: .04em; text-transform: uppercase; }
.card p { margin: 0 0 6px; }
.card dl { margin: 0; grid-template-columns: minmax(80px, max-content) minmax(0, 1fr); }
.card ul { margin: 0; padding: 0; list-style: none; }
.card li { margin-bottom: 6px; overflow-wrap: anywhere; }
.card li span { display: block; color: var(--muted); font-size: .9rem; }
.best { border: 2px solid var(--best); }
@media (min-width: 1000px) { .best { grid-column: span 2; } }
.warning { border-left: 4px solid var(--ink); background: var(--soft); padding: 8px 14px; margin-bottom: 16px; }
.warning ul { margin: 0; padding-left: 18px; overflow-wrap: anywhere; }
figure { margin: 0; min-width: 0; }
.plot { width: 100%; min-height: 120px; }
figcaption, .note { color: var(--muted); font-size: .92rem; max-width: 78ch; margin: 4px 0 0; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; list-style: none; margin: 0 0 6px; padding: 0;
  font-size: .88rem; overflow-wrap: anywhere; }
.swatch { display: inline-block; width: 14px; height: 14px; vertical-align: -2px; border-radius: 2px; }
.line { vertical-align: middle; }
details { margin: 10px 0; }
summary { cursor: pointer; padding: 6px 0; text-decoration: underline; }
.scroll { overflow-x: auto; }
.scroll:focus-visible, summary:focus-visible { outline: 2px solid var(--ink); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--muted); font-size: .88rem; padding-bottom: 6px; }
th { line-height: 1.3; }
.rows th, .rows td { padding: 6px 8px 6px 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
.rows th { vertical-align: bottom; font-weight: 600; }
.rows .n { text-align: right; } td.n, .k { white-space: nowrap; }
td.t:last-child { min-width: 170px; }
tbody tr:hover { background: var(--soft); }
.chosen td { font-weight: 600; color: var(--best); border-bottom: 2px solid var(--best); }
.heat { width: auto; margin: 0 0 14px; border-spacing: 2px; border-collapse: separate; }
.heat th { font-weight: 600; text-align: center; padding: 2px 4px; vertical-align: bottom; }
.heat th:first-child { text-align: left; padding-right: 10px; }
.heat td { text-align: center; padding: 5px 4px; min-width: 62px;
  outline: 1px solid var(--line); outline-offset: -1px; }
.heat .full { font-weight: 700; }
.heat em { display: block; font-style: normal; font-weight: 400; color: var(--busy); font-size: .8rem; }
.slow th { color: var(--busy); }
.swing { margin: 0 0 8px; } .swing p { margin: 0; font-size: .9rem; overflow-wrap: anywhere; }
.swing span { color: var(--muted); }
.track { position: relative; height: 14px; background: var(--soft); max-width: 760px; }
.reach { position: absolute; top: 0; bottom: 0; background: var(--assumed); min-width: 2px; }
.center { position: absolute; top: -2px; bottom: -2px; width: 2px; margin-left: -1px; background: var(--ink); }
dl { display: grid; grid-template-columns: minmax(120px, max-content) minmax(0, 1fr); gap: 4px 18px; margin: 0 0 18px; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 640px) {
  main { padding: 16px 14px 40px; }
  h1 { font-size: 1.25rem; }
  dl, .card dl { grid-template-columns: minmax(0, 1fr); gap: 0; } dd { margin-bottom: 8px; }
  .rows, .rows caption, .rows tbody { display: block; } .rows thead { display: none; }
  .rows tr { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 12px; padding: 8px 0;
    border-bottom: 1px solid var(--line); }
  .rows .chosen { border-bottom: 2px solid var(--best); border-top: 2px solid var(--best); }
  .rows td, .rows .n, .chosen td { border: 0; padding: 1px 0; text-align: left; white-space: normal;
    overflow-wrap: anywhere; min-width: 0; }
  .rows td::before { content: attr(data-head) ": "; color: var(--muted); font-weight: 400; }
  .heat { width: 100%; font-size: .74rem; border-spacing: 1px; table-layout: fixed; }
  .heat td { min-width: 0; padding: 5px 0; } .heat th { padding: 2px 0; font-size: .6rem; }
  .heat th:first-child { padding-right: 2px; width: 4.6rem; font-size: .74rem; }
  .rows td:empty { display: none; }
}
@media print {
  main { max-width: none; padding: 0; } section, figure, tr { break-inside: avoid; }
  .scroll { overflow: visible; } table { font-size: 8pt; }
}
"""
)
