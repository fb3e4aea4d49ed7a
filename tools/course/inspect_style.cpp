#include "inspect_style.hpp"

namespace course::tool {

// Narrow pages first. The code of a listing scrolls inside its box; the counts below or beside it
// stay where they are.
const std::string_view kPageStyle = R"css(
:root { color-scheme: light dark;
  --text: #1c2128; --ground: #ffffff; --card: #f4f6f8; --quiet: #57606a; --rule: #d8dde3; --edge: #6e7781; --link: #0550ae;
  --good: #18713a; --fair: #855600; --bad: #a63a2f;
  --global: #2f6fb0; --shared: #0f766e; --waste: #b3574c; --empty: #e6eaee;
  --once: #2f6fb0; --again: #ad4f44; --lane: #ffffff; --moved: #f3d9d5; --idle: #e6eaee;
  --comment: #57606a; --keyword: #7a3eb1; --cuda: #0b5cad; --string: #1d6b3a; --number: #8a4b00; --directive: #6b4b8a; }
@media (prefers-color-scheme: dark) { :root {
  --text: #e3e8ee; --ground: #14181d; --card: #1c2229; --quiet: #9aa7b4; --rule: #303840; --edge: #7d8894; --link: #79b8ff;
  --good: #56c271; --fair: #d8ac45; --bad: #e58f83;
  --global: #5b9bd5; --shared: #3fb3a3; --waste: #c4766b; --empty: #2a3138;
  --once: #6aa7e0; --again: #cf8378; --lane: #10151a; --moved: #4d3230; --idle: #2a3138;
  --comment: #93a0ad; --keyword: #c59bf0; --cuda: #7fb8f5; --string: #7fc796; --number: #e0b072; --directive: #b9a0d9; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--text); background: var(--ground); font: 1rem/1.5 system-ui, sans-serif; }
header, footer, .layout { max-width: 100rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 1.5rem; } header p { margin: .2rem 0; max-width: 46rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0; } h2 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 .5rem; }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .3rem; } h2, h3 { overflow-wrap: anywhere; }
section { padding: 1.5rem 0; border-top: 1px solid var(--rule); scroll-margin-top: 2.5rem; }
section p { max-width: 46rem; }
footer { padding-top: 1rem; padding-bottom: 2rem; border-top: 1px solid var(--rule); }
a { color: var(--link); } code { font-family: ui-monospace, monospace; font-size: .9em; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 1px; border-radius: 3px; }
.skip { position: absolute; left: 1rem; top: -6rem; padding: .5rem 1rem; background: var(--ground); z-index: 3; }
.skip:focus { top: .5rem; }
.quiet { color: var(--quiet); } .good { color: var(--good); } .fair { color: var(--fair); } .bad { color: var(--bad); }
.small { font-size: .875rem; } h2 .quiet, h2 .good, h2 .bad, h3 .quiet { font-size: .875rem; font-weight: normal; }

nav { position: sticky; top: 0; z-index: 2; background: var(--ground); border-bottom: 1px solid var(--rule);
  margin: .8rem -1rem 0; overflow-x: auto; }
nav ul { display: flex; gap: .2rem; list-style: none; margin: 0; padding: .3rem 1rem; }
nav a { display: block; padding: .3rem .5rem; white-space: nowrap; text-decoration: none; font-size: .875rem;
  border-left: 3px solid transparent; }
nav .group { padding: .3rem .2rem .3rem .7rem; font-size: .875rem; white-space: nowrap; color: var(--quiet); }
nav a:hover, nav a[aria-current] { background: var(--card); border-left-color: var(--link); }

.bars { list-style: none; margin: 1rem 0; padding: 0; }
.bars li { padding: .5rem 0; border-top: 1px solid var(--rule); }
.bar { display: grid; grid-template-columns: 3.6rem 1fr; gap: 0 .6rem; align-items: center; font-size: .875rem; }
.bar .track { display: flex; height: .8rem; background: var(--empty); }
.bar .amount { grid-column: 2; font-version-numeric: tabular-nums; }
.track i { display: block; min-width: 2px; } .track i + i { border-left: 1px solid var(--ground); }
i.global { background: var(--global); } i.shared { background: var(--shared); } i.waste { background: var(--waste); }
.swatches { list-style: none; margin: .5rem 0; padding: 0; } .swatches li { display: flex; gap: .6rem; margin: .35rem 0; }
.swatch { flex: none; width: 1.5rem; height: 1.1rem; margin-top: .2rem; }
.key { display: inline-flex; gap: .4rem; align-items: center; margin-right: 1.2rem; } .key .swatch { margin: 0; }
.swatch.global { background: var(--global); } .swatch.shared { background: var(--shared); } .swatch.waste { background: var(--waste); }
.swatch.once { background: var(--once); } .swatch.again { background: var(--again); }
.swatch.moved { background: var(--moved); border: 1px solid var(--again); } .swatch.idle { background: var(--idle); border: 1px solid var(--edge); }

dl { display: grid; grid-template-columns: 8.5rem 1fr; gap: .2rem .6rem; margin: .5rem 0; font-size: .9rem; }
dt { color: var(--quiet); } dd { margin: 0; }
.finding { border-left: 4px solid var(--bad); padding: .1rem .9rem; margin: .6rem 0; } .finding p { margin: .3rem 0; }
button { font: inherit; font-size: .875rem; padding: .3rem .7rem; color: var(--text); background: var(--card);
  border: 1px solid var(--edge); border-radius: 4px; cursor: pointer; }

.source { border: 1px solid var(--rule); border-radius: 6px; overflow-x: auto; margin: .3rem 0 1.4rem; container-type: inline-size; }
.lines { width: max-content; min-width: 100%; padding: .3rem 0; }
.row { display: grid; grid-template-columns: 2.9rem auto; column-gap: .6rem; background: var(--ground); font: .8rem/1.55 ui-monospace, monospace; }
.row .line { text-align: right; white-space: nowrap; color: var(--quiet); user-select: none; }
.row code { font: inherit; white-space: pre; padding-right: .6rem; }
.row .counts { grid-column: 1 / -1; position: sticky; left: 0; width: 100cqw; padding: 0 .6rem .2rem 3.5rem; }
.row.head { display: none; }
summary.row { cursor: pointer; list-style: none; background: var(--card); } summary.row::-webkit-details-marker { display: none; }
summary.row:focus-visible { outline-offset: -3px; }
summary.row .line::before { content: "+ "; color: var(--link); } details[open] > summary.row .line::before { content: "- "; }
.count { display: block; font: .8rem/1.5 system-ui, sans-serif; font-version-numeric: tabular-nums; }
.count code { font: .78rem ui-monospace, monospace; padding: 0; }
.chip { display: inline-block; border: 1px solid; border-radius: 3px; padding: 0 .35rem; font-weight: 600; font-size: .75rem;
  white-space: nowrap; background: var(--ground); }
.share { display: block; font: .75rem/1.5 system-ui, sans-serif; color: var(--quiet); }
.cut { border-top: 1px dashed var(--edge); margin: .4rem 0; }
.card { position: sticky; left: 0; width: 100cqw; padding: .3rem .8rem .5rem; border-left: 4px solid var(--rule); font-size: .9rem; }
.card p { margin: .4rem 0; max-width: 46rem; } .card + .card { border-top: 1px solid var(--rule); }
.picture { overflow-x: auto; }

.comment { color: var(--comment); font-style: italic; } .keyword { color: var(--keyword); } .cuda { color: var(--cuda); font-weight: 600; }
.string { color: var(--string); } .number { color: var(--number); } .directive { color: var(--directive); }

svg { display: block; font: 10px ui-monospace, monospace; }
svg .axis { fill: var(--quiet); } svg .fold { fill: var(--text); font-size: 11px; }
svg .lane { fill: var(--lane); pointer-events: none; }
svg .part { fill: var(--text); stroke: var(--moved); stroke-width: 3px; paint-order: stroke; }
svg .once { fill: var(--once); } svg .again { fill: var(--again); }
svg .moved { fill: var(--moved); stroke: var(--again); } svg .idle { fill: var(--idle); }

@media (min-width: 40rem) {
  dl { grid-template-columns: max-content 1fr; gap: 0 1.2rem; }
  .bar { grid-template-columns: 3.6rem 1fr 15rem; } .bar .amount { grid-column: auto; }
  .legend { display: grid; grid-template-columns: max-content 1fr; gap: 0 2rem; }
}
@media (min-width: 70rem) {
  .layout { display: grid; grid-template-columns: 12rem minmax(0, 1fr); gap: 2.5rem; }
  nav { align-self: start; top: 1rem; max-height: calc(100vh - 2rem); overflow-y: auto; margin: 1.5rem 0 0; border-bottom: 0; }
  nav ul { display: block; padding: 0; } nav .group { padding: .8rem 0 .1rem .7rem; white-space: normal; } nav a { white-space: normal; overflow-wrap: anywhere; }
  section { scroll-margin-top: 0; }
  .bars li { display: grid; grid-template-columns: 14rem 1fr; }
}
@container (min-width: 56rem) {
  .row { grid-template-columns: 3.2rem minmax(max-content, 1fr) 25rem; }
  .row.head { display: grid; color: var(--quiet); font: .75rem/1.6 system-ui, sans-serif; border-bottom: 1px solid var(--rule); }
  .row .counts { grid-column: 3; right: 0; left: auto; width: 25rem; padding: 0 .6rem; border-left: 1px solid var(--rule);
    display: grid; grid-template-columns: minmax(0, 1fr) 2.4rem; column-gap: .5rem; background: inherit; }
  .narrow { display: none; }
  .share { text-align: right; }
  .card { padding-left: 4rem; }
}
)css";

const std::string_view kPageScript = R"js(
const tools = document.getElementById("tools");
for (const [text, open] of [["Open all lines", true], ["Close all lines", false]]) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.onclick = () => document.querySelectorAll("details").forEach(each => each.open = open);
  tools.append(button, " ");
}
const nav = document.querySelector("nav");
const links = new Map([...document.querySelectorAll("nav a")].map(link => [link.hash.slice(1), link]));
const seen = new Set();
const observer = new IntersectionObserver(entries => {
  for (const entry of entries) entry.isIntersecting ? seen.add(entry.target.id) : seen.delete(entry.target.id);
  const current = [...links.keys()].find(id => seen.has(id));
  if (current) nav.scrollLeft = links.get(current).offsetLeft - 16;
  for (const [id, link] of links) id === current ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
}, {rootMargin: "-15% 0px -60% 0px"});
document.querySelectorAll("section[id]").forEach(section => observer.observe(section));
)js";

}  // namespace course::tool
