// Queues and policies, and the configuration in force.
import { Chart, Facts, Table, html, number, percent, span, term as named, words } from './parts.mjs';
import { doc, history, settings, to } from './state.mjs';
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
    <${Gains} />
    ${status.plan && html`<p>Plan in force: <a href=${to('plans', status.plan.name)}>${status.plan.name}</a></p>`}
    ${found && html`<section aria-labelledby="policies"><h2 id="policies">Policies</h2>
    <${Table} caption="Policies and their parameters in force" by=${(row) => row.name} rows=${found.policies} columns=${[
    ['Policy', (row) => row.name + (row.name === found.default_policy ? ' (default)' : '')],
    ['Can', (row) => row.capabilities.map(words).join(', ')],
    ['What it does', (row) => row.summary],
    ['Parameters', (row) => (row.params_toml.trim() ? html`<details><summary>show</summary><pre>${row.params_toml}</pre></details>` : 'none')],
  ]} /></section>`}`;
}

const GAINS = [['cross_rack_bytes', 'Cross-rack bytes'], ['remote_bytes', 'Remote bytes (input read from other hosts)']];

/** What hints were to save and did, over the hour: a chart for each cost term. */
function Gains() {
  const hour = history.value;
  const share = (values) => values.map((value) => (value == null ? null : 100 * value));
  const known = GAINS.filter(([term]) => hour?.gains[term].expected.some((value) => value != null));
  return html`<section aria-labelledby="gains"><h2 id="gains">Saved over time</h2>
    ${!known.length ? html`<p class="empty">No decision of the last hour is settled and compared with where YARN would have put its containers.</p>` : html`
    <div class="charts">${known.map(([term, what]) => html`<figure><figcaption>${what} that hints save of what YARN alone would send, over the ten minutes before each point, in queues that give hints: expected, if all hints were followed, and actual, where the containers came. A gap: no decision was compared in those ten minutes</figcaption>
      <${Chart} title=${'Saved: ' + named(term)} unit=" %" at=${hour.at_ms} series=${[['expected', share(hour.gains[term].expected), '--one'], ['actual', share(hour.gains[term].realised), '--two']]} /></figure>`)}</div>`}</section>`;
}

/** Whether what is on disk is in force: the daemon reads the file whenever it is saved. */
function onDisk({ config_restart_keys: waits = [] }) {
  return 'in force' + (waits.length ? `, but for what waits for a restart: ${waits.join(', ')}` : '');
}

export function Configuration() {
  const { status } = doc.value;
  const found = settings.value;
  return html`
    ${status.config_refused && html`<section class="alert" id="refused"><h2>The configuration on disk is refused; the one before it stays in force</h2><pre>${status.config_refused}</pre></section>`}
    <${Facts} rows=${[
    ['File', found?.path ?? status.config_file],
    ['The file on disk', status.config_refused ? 'refused, see above: the one before it is in force' : onDisk(status), status.config_refused ? 'bad' : ''],
    ['Generation', `${status.config_generation}${status.config_generation === 1 ? ' (as at the start)' : ''}`],
    ['Last change', found?.last_changed.length ? found.last_changed.join(', ') : 'no change since the start'],
    ['Default policy', found?.default_policy ?? '–'],
    ['Policy by framework', Object.entries(found?.frameworks ?? {}).map(([name, policy]) => `${name}: ${policy}`).join(', ') || 'the default for all'],
    ['Instance', status.instance_id],
  ]} />
    <section aria-labelledby="refusals"><h2 id="refusals">Refusals</h2>
    <${Table} caption="Refused most" empty="nobody." by=${(row) => row.kind + row.name + row.reason} rows=${status.refused} columns=${[
    ['Who', (row) => `${row.kind} ${row.name}`], ['Reason', (row) => words(row.reason)], ['Requests', (row) => number(row.requests), 'n'], ['Last', (row) => span(row.since_ms) + ' ago', 'n'],
  ]} /></section>
    <section aria-labelledby="counters"><h2 id="counters">Counters</h2><details><summary>Since the start</summary>
    <${Table} caption="Counters" by=${([name]) => name} rows=${Object.entries(status.counters)} columns=${[['Counter', ([name]) => words(name)], ['Count', ([, value]) => value, 'n']]} /></details></section>`;
}
