"""How the page looks, by day and by night. Nothing is fetched: fonts are the reader's own."""

CSS = """
:root {
  color-scheme: light dark;
  --back: #ffffff; --card: #f6f7f9; --text: #1c2330; --soft: #5b6472; --rule: #d8dce3;
  --good: #19733f; --bad: #b3261e; --warn: #8a5a00; --link: #1a5fb4; --paper: #d1145a;
  --k0: #1f6fb2; --k1: #d9730d; --k2: #2a8c4a; --k3: #8e44ad; --k4: #b5892b; --k5: #0e8f8f; --k6: #a0522d;
  --k7: #6b7280;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14171c; --card: #1c2027; --text: #e4e7ec; --soft: #a0a8b5; --rule: #363c47;
    --good: #6fcf97; --bad: #ff8a80; --warn: #f2c14e; --link: #8ab8f5; --paper: #ff6fa3;
    --k0: #6cb2f0; --k1: #f5a35c; --k2: #71c98c; --k3: #c79ae0; --k4: #e3c06a; --k5: #55cfcf; --k6: #d99a78;
    --k7: #9aa3b2;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 1000px; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif; }
h1 { margin: 0 0 .3rem; font-size: 1.7rem; }
h2 { margin: 2.6rem 0 .4rem; padding-top: .8rem; border-top: 1px solid var(--rule); font-size: 1.25rem; }
h2 .id { margin-right: .6rem; padding: .1rem .5rem; border-radius: .3rem; background: var(--card);
  color: var(--soft); font-family: ui-monospace, monospace; font-size: .95rem; }
h3 { margin: 1.6rem 0 .3rem; font-size: 1.05rem; }
a { color: var(--link); }
p { margin: .5rem 0; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .86rem; }
pre { overflow-x: auto; padding: .7rem; background: var(--card); border-radius: .3rem; }
.soft, .note { color: var(--soft); }
.note { font-size: .88rem; }
.absent { padding: .5rem .8rem; border-left: 4px solid var(--warn); background: var(--card); }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
.wide { overflow-x: auto; margin: .7rem 0; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { padding: .22rem .6rem; border-bottom: 1px solid var(--rule); vertical-align: top; text-align: left; }
th { color: var(--soft); font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
figure { margin: 1.2rem 0; padding: .8rem; background: var(--card); border-radius: .5rem; }
figcaption { margin-bottom: .4rem; font-weight: 600; }
.panels { display: flex; flex-wrap: wrap; gap: .8rem; }
.panel { flex: 0 1 auto; min-width: 0; max-width: 100%; }
.panel-title { margin-left: 76px; color: var(--soft); font-size: .9rem; }
.panel svg { display: block; max-width: 100%; height: auto; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; margin: .4rem 0 0 76px; padding: 0;
  list-style: none; font-size: .88rem; }
.legend svg { margin-right: .35rem; vertical-align: -2px; }
.overview .family th { padding-top: 1.1rem; border-bottom: 2px solid var(--rule); color: var(--text); }
.overview .family .soft { font-weight: 400; white-space: nowrap; }
.overview td:first-child { white-space: nowrap; }
.overview td:nth-child(3) { white-space: nowrap; }
.overview td:nth-child(4) { min-width: 15rem; }
.overview td:nth-child(5), .overview td:nth-child(6) { font-size: .82rem; }
@media (max-width: 800px) {
  nav > ul { columns: 1 !important; }
  .overview th:nth-child(5), .overview td:nth-child(5), .overview th:nth-child(6), .overview td:nth-child(6) {
    display: none; }
  .overview td:nth-child(4) { min-width: 0; }
  .panel-title, .legend { margin-left: 0 !important; }
}
.on-narrow { display: none; }
@media (max-width: 600px) {
  body { padding: .9rem; }
  .on-wide { display: none; }
  .on-narrow { display: block; }
  .overview table, .overview tbody { display: block; }
  .overview thead { display: none; }
  .overview tr { display: flex; flex-wrap: wrap; border-bottom: 1px solid var(--rule); }
  .overview td { border: 0; }
  .overview td:nth-child(2) { flex: 1; }
  .overview td:nth-child(4) { flex: 1 0 100%; padding-top: 0; }
  .stacked table, .stacked thead, .stacked tbody { display: block; }
  .stacked tr { display: flex; flex-wrap: wrap; border-bottom: 1px solid var(--rule); }
  .stacked th, .stacked td { border: 0; }
  .stacked .word { flex: 1 0 100%; padding-bottom: 0; }
  .stacked .number { flex: 1 1 4.5rem; text-align: left; }
}
nav > ul { columns: 2; column-gap: 2rem; margin: .3rem 0; padding-left: 0; list-style: none; }
nav ul ul { margin: 0 0 .6rem; padding-left: 1.1rem; }
details { margin: .6rem 0; } summary { cursor: pointer; color: var(--link); }
svg text { font: 12px system-ui, "Segoe UI", "Noto Sans", sans-serif; }
svg text.value { font-size: 11px; }
svg { stroke-linejoin: round; overflow: visible; }
"""
