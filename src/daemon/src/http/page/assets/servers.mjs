// Servers that the daemon asks, feeds that it hears, and who watches routes.
import { Table, fresh, html, span, words } from './parts.mjs';
import { doc } from './state.mjs';

/** How a server stands, as people say it, and how good that is. */
function stands(server) {
  const since = span(server.since_ms);
  switch (server.state) {
    case 'answers': return ['answers', 'good'];
    case 'standby': return ['standby', 'off'];
    case 'not_asked': return ['not asked: another one answers', 'off'];
    case 'safe_mode': return [`in safe mode for ${since}`, 'warn'];
    case 'busy': return [`too busy for ${since}`, 'warn'];
    case 'wrong_answer': return [`answers wrongly for ${since}`, 'bad'];
    default: return [`no good answer for ${server.heard_ms == null ? since : span(server.heard_ms)}`, 'bad'];
  }
}

const ago = (ms) => (ms == null ? 'never' : span(ms) + ' ago');

export function Servers() {
  const { status } = doc.value;
  return html`
    <${Table} caption="ResourceManagers, NameNodes, history servers and controllers that the daemon asks" empty="none is configured: feeds tell what they would." by=${(row) => row.source + '\n' + row.address} rows=${status.servers} columns=${[
    ['Server', (row) => words(row.source)],
    ['Address', (row) => row.address],
    ['State', (row) => html`<span class=${'state ' + stands(row)[1]}>${stands(row)[0]}</span>`],
    ['In use', (row) => (row.in_use ? 'yes' : 'no')],
    ['Last good answer', (row) => ago(row.heard_ms), 'n'],
    ['Last asked', (row) => ago(row.asked_ms), 'n'],
    ['Error', (row) => row.error || '–'],
    ['What to do', (row) => row.advice || '–'],
  ]} />
    <section aria-labelledby="feeds"><h2 id="feeds">Feeds</h2>
    <${Table} caption="Sources of the model, whoever tells of them" by=${(row) => row.source} rows=${status.ages} columns=${[
    ['Source', (row) => words(row.source)], ['Heard', (row) => ago(row.age_ms), 'n'],
    ['Fresh', (row) => html`<span class=${'state ' + fresh(row)[1]}>${fresh(row)[0]}</span>`],
  ]} /></section>
    <section aria-labelledby="watchers"><h2 id="watchers">Watchers of routes</h2>
    <${Table} caption="Who watches routes and installs them" empty="none." by=${(row) => row.name} rows=${status.watchers} columns=${[
    ['Watcher', (row) => row.name], ['Installs', (row) => (row.installs ? 'yes' : 'no')],
    ['State', (row) => html`<span class=${'state ' + (row.state === 'silent' ? 'bad' : row.attached ? 'good' : 'warn')}>${row.attached ? row.state : row.state + ', away'}</span>`],
    ['Since', (row) => span(row.since_ms), 'n'], ['Routes', (row) => row.routes, 'n'], ['Acknowledged', (row) => `${row.acknowledged} of ${row.sent}`, 'n'],
    ['Refused', (row) => row.refused_total, 'n'],
  ]} /></section>`;
}
