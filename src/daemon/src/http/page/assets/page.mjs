// The page: head, navigation, the state of its connection, and one view at a time.
import { render } from './vendor/preact.mjs';
import { effect, signal } from './vendor/signals-core.mjs';
import { OLD_MS, clock, count, cut, html, span, words, zone } from './parts.mjs';
import { cameFrom, doc, heardAt, link, place, read, restarted, start, to, trail } from './state.mjs';
import { Overview } from './overview.mjs';
import { Network } from './network.mjs';
import { Nodes } from './nodes.mjs';
import { Applications, Decisions } from './applications.mjs';
import { Plans } from './plans.mjs';
import { Circuits } from './circuits.mjs';
import { Servers } from './servers.mjs';
import { Alerts } from './alerts.mjs';
import { Configuration, Queues } from './settings.mjs';

const VIEWS = {
  overview: ['Overview', Overview],
  network: ['Network', Network],
  nodes: ['Nodes', Nodes],
  applications: ['Applications', Applications],
  decisions: ['Decisions', Decisions],
  queues: ['Queues and policies', Queues],
  plans: ['Plans', Plans],
  circuits: ['Circuits and chains', Circuits],
  servers: ['Servers', Servers],
  alerts: ['Alerts', Alerts],
  configuration: ['Configuration', Configuration],
};
const tick = signal(0);

function Connection() {
  tick.value; // what stands here changes with time alone, too
  const last = heardAt.value ? `What is shown is of ${clock(heardAt.value)}, ${span(Date.now() - heardAt.value)} ago.` : 'Nothing was heard yet.';
  const said = {
    lost: `No answer from the daemon. ${last} This page tries again by itself.`,
    closed: `The session has ended: the daemon was restarted, or page.session_time is over. ${last} Run hintctl page on the daemon's machine and open its address in this browser; this tab goes on then.`,
    full: `As many tabs as page.streams allows are open. ${last} Close one; this tab goes on then.`,
  }[link.value];
  return html`<div role="status" aria-live="polite" class="connection">
    ${said && html`<p class="alert" id="trouble">${said}</p>`}
    ${!said && restarted.value && html`<p class="note">The daemon was restarted while this page was open; counts began again.</p>`}
  </div>`;
}

function Head() {
  const status = doc.value?.status;
  const live = link.value === 'live';
  const firing = doc.value?.firing.length ?? 0;
  const state = !status ? 'opening' : !live ? 'not live' : !status.ready ? 'NOT READY: ' + status.not_ready_reason
    : status.degraded.length ? 'ready, DEGRADED: ' + status.degraded.map(words).join(', ') : 'ready';
  const kind = !status || !live ? 'off' : !status.ready ? 'bad' : status.degraded.length ? 'warn' : 'good';
  return html`<header><a class="skip" href="#view" onClick=${skip}>Skip to the view</a>
    <p class="title"><b>hintd</b> ${status ? status.version : ''} <span class=${'state ' + kind} id="state">${state}</span>${firing > 0 && html` <a class="count" id="firing" href="#/alerts">${count(firing, 'alert')}</a>`}</p>
    <nav aria-label="Views"><ul>${Object.entries(VIEWS).map(([name, [title]]) => html`
      <li><a href=${'#/' + name} aria-current=${name === place.value.view ? 'page' : undefined}>${title}</a>${name === 'alerts' && firing > 0 && html`<span class="count" aria-label=${firing + ' firing'}>${firing}</span>`}</li>`)}</ul></nav></header>`;
}

function skip(event) {
  event.preventDefault();
  document.getElementById('view')?.focus();
}

function App() {
  const [title, View] = Object.hasOwn(VIEWS, place.value.view) ? VIEWS[place.value.view] : VIEWS.overview;
  return html`<${Head} /><main><${Connection} /><h1 id="view" tabindex="-1">${title}</h1>
    ${doc.value ? html`<${View} />` : html`<p>Waiting for the first document.</p>`}</main>
    <footer>Read-only. Times are ${zone()}. Rates are those of the last second or few; the last hour has a point every 10 s. A load older than ${span(OLD_MS)} is faded, with its age beside it.</footer>`;
}

/** What has the focus; what moved with its row, or was drawn anew, gets it back. */
function refocus(had, href) {
  const body = document.body;
  if (had === body || document.activeElement !== body) return;
  const again = had.isConnected ? had : href && [...root.querySelectorAll('a')].find((one) => one.getAttribute('href') === href);
  (again || document.getElementById('view'))?.focus({ preventScroll: true });
}

/** What the reader opened last and has not come to yet, and what had the focus since. */
let opened = null;
/** Places that Esc leads back to: no more than these. */
const TRAIL_MAX = 30;
/** Where the reader comes back to just now: an entry of the trail. */
let returning = null;

const same = (one, other) => one.view === other.view && one.chosen === other.chosen;
/** Before the place changes: where the reader is, how far down, and what is pressed there, for who comes back. */
addEventListener('hashchange', () => {
  const [here, next, top] = [place.peek(), read(), cameFrom()];
  returning = null;
  if (same(here, next)) return;
  const at = document.activeElement;
  const entry = { scroll: scrollY, from: at, top: at?.getBoundingClientRect().top ?? 0, href: at?.getAttribute('href') ?? to(next.view, next.chosen) };
  const title = (VIEWS[here.view] ?? VIEWS.overview)[0] + (here.chosen ? ': ' + cut(here.chosen, 24) : '');
  // Tabs lead to a view's beginning.
  const isTab = !!at?.closest('nav');
  if (here.chosen && top && same(top, next) && !isTab) returning = trail.pop();
  else if (!next.chosen || isTab) trail.length = 0;
  // Within a view Esc closes what is open; from another view it leads there.
  else if (here.view === next.view) trail.splice(0, Infinity, { view: here.view, chosen: '', title, ...entry });
  else trail.splice(0, Infinity, ...trail.slice(1 - TRAIL_MAX), { ...here, title, ...entry });
});
const headOf = () => root.querySelector('section.panel h2');

/** On a phone the tabs are a row that scrolls: the current one is in sight. */
function seeTab() {
  const [row, tab] = [root.querySelector('nav ul'), root.querySelector('nav [aria-current]')];
  if (row && tab) row.scrollLeft += tab.getBoundingClientRect().left - row.getBoundingClientRect().left - (row.clientWidth - tab.offsetWidth) / 2;
}

/** Brings the reader to what was opened, once it is there; who went elsewhere meanwhile is left alone. */
function toOpened() {
  const head = opened && !opened.come && headOf();
  if (!head) return;
  opened.come = true;
  const at = document.activeElement;
  if (at !== opened.from && at !== document.body && at.id !== 'view') return;
  head.focus({ preventScroll: true });
  head.scrollIntoView({ block: 'start' });
}

/** Brings the reader back to what was pressed, or to the row of what was open; as far down as it was, where that is known. */
function toOpener({ view, chosen }, back) {
  const href = back?.href ?? to(view, chosen);
  if (back) scrollTo(0, back.scroll);
  // The same may be linked more than once: the one that stands where it stood.
  const off = (one) => (back ? Math.abs(one.getBoundingClientRect().top - back.top) : one.closest('table') ? 0 : 1);
  const row = [...root.querySelectorAll('main a')].filter((one) => one.getAttribute('href') === href).sort((a, b) => off(a) - off(b))[0];
  const from = back?.from;
  const opener = from?.isConnected && from !== document.body && from.id !== 'view' ? from : row;
  // A row of this view is come to wherever it is now; another view is shown as it was.
  const { view: now } = place.peek();
  (opener ?? document.getElementById('view'))?.focus({ preventScroll: !!back && view !== now });
  opened = null;
}

addEventListener('keydown', (event) => {
  const { view, chosen } = place.peek();
  // In a field Esc is the field's.
  if (event.key !== 'Escape' || !chosen || event.defaultPrevented || event.target.closest?.('input:not([type="checkbox"]), select')) return;
  const back = cameFrom();
  location.hash = back ? to(back.view, back.chosen) : to(view);
});
// The link of what is open already leads to it, too.
addEventListener('click', (event) => {
  const link = event.target.closest?.('a');
  if (!link || link.getAttribute('href') !== location.hash || !headOf()) return;
  opened = { from: link };
  toOpened();
});

let shown = null;
const root = document.getElementById('root');
root.textContent = '';
effect(() => {
  const had = document.activeElement ?? document.body;
  const href = had.getAttribute('href');
  render(html`<${App} />`, root);
  refocus(had, href);
  const { view, chosen } = place.value;
  document.title = (VIEWS[view] ?? VIEWS.overview)[0] + ' – hintd';
  const isNew = !shown || shown.view !== view || shown.chosen !== chosen;
  const back = isNew ? returning : null;
  if (isNew) returning = null;
  if (shown && back) toOpener(shown, back);
  else if (isNew && chosen) {
    // What had the focus may be gone with its view, and its like here have it.
    opened = { from: document.activeElement };
    if (shown && shown.view !== view) scrollTo(0, 0);
  // Who moved by the keyboard or a screen reader is where the view begins.
  } else if (shown && shown.view !== view) document.getElementById('view')?.focus({ preventScroll: false });
  else if (shown && isNew) toOpener(shown);
  if (shown?.view !== view) seeTab();
  shown = { view, chosen };
  toOpened();
});
start(() => { if (link.value !== 'live') tick.value += 1; });
