"""The style sheet of the page: system fonts only, one column on a phone, ink-saving in print."""

CSS = """
:root { --ink: #1f2933; --muted: #52606d; --line: #d9dfe5; --soft: #f5f7f9; --best: #00684a; --blue: #005a8f; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 24px 20px 56px; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 20px; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 36px 0 10px; }
.kicker { margin: 0; color: var(--muted); font-size: .85rem; letter-spacing: .06em; text-transform: uppercase; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); gap: 16px; }
.card { border: 1px solid var(--line); border-radius: 8px; padding: 14px 18px; min-width: 0; }
.card h2 { margin: 0 0 6px; font-size: .85rem; color: var(--muted); letter-spacing: .04em; text-transform: uppercase; }
.card p { margin: 0 0 6px; }
.card ul { margin: 0; padding: 0; list-style: none; }
.card li { margin-bottom: 6px; }
.card li span { display: block; color: var(--muted); font-size: .9rem; }
.best { border: 2px solid var(--best); }
.big { font-size: 1.15rem; font-weight: 600; color: var(--best); overflow-wrap: anywhere; }
.warning { border-left: 4px solid #b45309; background: #fff8eb; padding: 8px 14px; margin-bottom: 16px; }
.warning ul { margin: 0; padding-left: 18px; overflow-wrap: anywhere; }
figure { margin: 0; min-width: 0; overflow: hidden; }
.plot { width: 100%; min-height: 260px; }
figcaption { color: var(--muted); font-size: .92rem; max-width: 78ch; margin-top: 4px; }
.scroll { overflow-x: auto; }
.scroll:focus-visible { outline: 2px solid var(--blue); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--muted); font-size: .88rem; padding-bottom: 6px; }
th { line-height: 1.3; }
th, td { padding: 6px 8px 6px 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { vertical-align: bottom; font-weight: 600; }
.n { text-align: right; } .n, .k { white-space: nowrap; }
td.t:last-child { min-width: 170px; }
tbody tr:hover { background: var(--soft); }
dl { display: grid; grid-template-columns: minmax(120px, max-content) minmax(0, 1fr); gap: 4px 18px; margin: 0 0 18px; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 640px) {
  main { padding: 16px 14px 40px; overflow-x: clip; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; } dd { margin-bottom: 8px; }
}
@media print {
  main { max-width: none; padding: 0; } section, figure, tr { break-inside: avoid; }
  .scroll { overflow: visible; } table { font-size: 8pt; }
}
"""
