// Queues and policies, and the configuration in force.
import { Facts, Table, html, number, percent, span, words } from './parts.mjs';
import { doc, settings } from './state.mjs';
import { Worth } from './overview.mjs';

export function Queues() {
  const found = settings.value;
  const { status } = doc.value;
  return html`${!found ? html`<p>Asking for the settings.</p>` : html`
    <${Table} caption="Queues; * is every queue that is not named" by=${(row) => row.name} rows=${found.queues} columns=${[
    ['Queue', (row) => row.name],
    ['Mode', (row) => html`<span class=${'state ' + (row.mode === 'on' ? 'good' : 'off')}>${row.mode}</span>`],
    ['Policy', (row) => row.policy ?? `${found.default_policy} (default)`],
    ['Held out', (row) => percent(row.holdout), 'n'],
    ['Holds receivers', (row) => (row.hold ? 'yes' : 'no')],
  ]} />`}
    <${Worth} status=${status} />
    <${Plan} plan=${status.plan} />
    ${found && html`<section aria-labelledby="policies"><h2 id="policies">Policies</h2>
    <${Table} caption="Policies and their parameters in force" by=${(row) => row.name} rows=${found.policies} columns=${[
    ['Policy', (row) => row.name + (row.name === found.default_policy ? ' (default)' : '')],
    ['Can', (row) => row.capabilities.map(words).join(', ')],
    ['What it is', (row) => row.summary],
    ['Parameters', (row) => (row.params_toml.trim() ? html`<details><summary>show</summary><pre>${row.params_toml}</pre></details>` : 'none')],
  ]} /></section>`}`;
}

const Plan = ({ plan }) => plan && html`<section aria-labelledby="plan"><h2 id="plan">Plan in force</h2>
  <${Facts} rows=${[['Name', plan.name], ['Left', span(plan.left_ms)], ['Jobs', String(plan.jobs ?? '–')]]} />
  <${Table} caption="How it is followed" by=${(row) => row.policy} rows=${plan.followed} columns=${[
    ['Policy', (row) => row.policy], ['Followed', (row) => row.followed, 'n'], ['Missed', (row) => row.missed, 'n'], ['To come', (row) => row.expected, 'n'], ['Deviating', (row) => row.deviating, 'n'],
  ]} /></section>`;

export function Configuration() {
  const { status } = doc.value;
  const found = settings.value;
  return html`
    ${status.config_refused && html`<section class="alert" id="refused"><h2>The configuration on disk is refused; the one before it stays in force</h2><pre>${status.config_refused}</pre></section>`}
    <${Facts} rows=${[
    ['File', status.config_file], ['Generation', `${status.config_generation}${status.config_generation === 1 ? ' (as at the start)' : ''}`],
    ['Last change', found?.last_changed.length ? found.last_changed.join(', ') : 'none since the start'],
    ['Default policy', found?.default_policy ?? '–'],
    ['By framework', Object.entries(found?.frameworks ?? {}).map(([name, policy]) => `${name}: ${policy}`).join(', ') || 'none'],
    ['Instance', status.instance_id],
  ]} />
    <section aria-labelledby="sources"><h2 id="sources">Sources</h2>
    <${Table} caption="Feeds" by=${(row) => row.source} rows=${status.ages} columns=${[
    ['Source', (row) => words(row.source)], ['Heard', (row) => span(row.age_ms), 'n'],
    ['Fresh', (row) => html`<span class=${'state ' + (row.stale ? (row.age_ms == null ? 'off' : 'warn') : 'good')}>${row.stale ? (row.age_ms == null ? 'never heard' : 'too old') : 'fresh'}</span>`],
  ]} />
    <${Table} caption="Servers that the daemon asks" empty="none is configured." by=${(row) => row.source + row.address} rows=${status.servers} columns=${[
    ['Server', (row) => words(row.source)], ['Address', (row) => row.address], ['State', (row) => words(row.state)], ['Last good answer', (row) => span(row.heard_ms), 'n'], ['Error', (row) => row.error || '–'],
  ]} />
    <${Table} caption="Watchers of routes" empty="none." by=${(row) => row.name} rows=${status.watchers} columns=${[
    ['Watcher', (row) => row.name], ['Installs', (row) => (row.installs ? 'yes' : 'no')], ['State', (row) => (row.attached ? row.state : row.state + ', away')],
    ['Routes', (row) => row.routes, 'n'], ['Acknowledged', (row) => `${row.acknowledged} of ${row.sent}`, 'n'], ['Refused', (row) => row.refused_total, 'n'],
  ]} />
    <${Table} caption="Refused most" empty="nobody." by=${(row) => row.kind + row.name + row.reason} rows=${status.refused} columns=${[
    ['Who', (row) => `${row.kind} ${row.name}`], ['Reason', (row) => words(row.reason)], ['Requests', (row) => number(row.requests), 'n'], ['Last', (row) => span(row.since_ms) + ' ago', 'n'],
  ]} /></section>
    <section aria-labelledby="counters"><h2 id="counters">Counters</h2><details><summary>Since the start</summary>
    <${Table} caption="Counters" by=${([name]) => name} rows=${Object.entries(status.counters)} columns=${[['Counter', ([name]) => words(name)], ['Count', ([, value]) => value, 'n']]} /></details></section>`;
}
