// The page: head, navigation, the state of its connection, and one view at a time.
import { render } from './vendor/preact.mjs';
import { effect, signal } from './vendor/signals-core.mjs';
import { OLD_MS, clock, count, html, span, words, zone } from './parts.mjs';
import { doc, heardAt, link, place, restarted, start, to } from './state.mjs';
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
    <footer>Read-only. Times are ${zone()}. Rates are those between two documents; the hour has a point every 10 s. A load older than ${span(OLD_MS)} is faded, with its age beside it.</footer>`;
}

/** What has the focus; what moved with its row, or was drawn anew, gets it back. */
function refocus(had, href) {
  const body = document.body;
  if (had === body || document.activeElement !== body) return;
  const again = had.isConnected ? had : href && [...root.querySelectorAll('a')].find((one) => one.getAttribute('href') === href);
  (again || document.getElementById('view'))?.focus({ preventScroll: true });
}

/** What the reader opened last and has not come to yet, what had the focus then, and what opened it: who closes it is there again. */
let opened = null;
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

/** Brings the reader back to what opened it, or to its row. */
function toOpener({ view, chosen }) {
  const row = [...root.querySelectorAll('main table a')].find((one) => one.getAttribute('href') === to(view, chosen));
  const opener = opened?.from?.isConnected && opened.from !== document.body && opened.from.id !== 'view' ? opened.from : row;
  (opener ?? document.getElementById('view'))?.focus();
  opened = null;
}

addEventListener('keydown', (event) => {
  const { view, chosen } = place.peek();
  // In a field Esc is the field's.
  if (event.key !== 'Escape' || !chosen || event.defaultPrevented || event.target.closest?.('input, select')) return;
  location.hash = to(view);
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
  if (isNew && chosen) opened = { from: had };
  // Who moved by the keyboard or a screen reader is where the view begins.
  else if (shown && shown.view !== view) document.getElementById('view')?.focus({ preventScroll: false });
  else if (shown && isNew) toOpener(shown);
  if (shown?.view !== view) seeTab();
  shown = { view, chosen };
  toOpened();
});
start(() => { if (link.value !== 'live') tick.value += 1; });
