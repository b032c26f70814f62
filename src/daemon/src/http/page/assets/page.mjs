// The page: head, navigation, the state of its connection, and one view at a time.
import { render } from './vendor/preact.mjs';
import { effect, signal } from './vendor/signals-core.mjs';
import { OLD_MS, clock, html, span, zone } from './parts.mjs';
import { doc, heardAt, link, place, restarted, start } from './state.mjs';
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
    : status.degraded.length ? 'ready, DEGRADED: ' + status.degraded.join(' ') : 'ready';
  const kind = !status || !live ? 'off' : !status.ready ? 'bad' : status.degraded.length ? 'warn' : 'good';
  return html`<header><a class="skip" href="#view" onClick=${skip}>Skip to the view</a>
    <p class="title"><b>hintd</b> ${status ? status.version : ''} <span class=${'state ' + kind} id="state">${state}</span></p>
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

let shown = null;
const root = document.getElementById('root');
root.textContent = '';
effect(() => {
  const had = document.activeElement ?? document.body;
  const href = had.getAttribute('href');
  render(html`<${App} />`, root);
  refocus(had, href);
  const { view } = place.value;
  document.title = (VIEWS[view] ?? VIEWS.overview)[0] + ' – hintd';
  // Who moved by the keyboard or a screen reader is where the view begins.
  if (shown !== null && shown !== view) document.getElementById('view')?.focus({ preventScroll: false });
  shown = view;
});
start(() => { if (link.value !== 'live') tick.value += 1; });
