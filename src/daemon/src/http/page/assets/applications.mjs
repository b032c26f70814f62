// Applications, decisions, and one decision explained.
import { Bar, Copy, Facts, Filter, Id, Load, Table, bits, busier, clock, html, number, percent, span, when, words, zone } from './parts.mjs';
import { doc, explained, filter, place, since, to } from './state.mjs';
import { Replay, Terms } from './replay.mjs';

const groups = (row) => row.groups.map((group) => `${group.count} × ${group.name}`).join(', ');
const came = (row) => (row.refused ? 'refused: ' + words(row.refused) : row.withheld ? 'withheld: ' + words(row.withheld) : row.mode === 'on' ? (row.without_room > 0 && !row.hinted ? 'waits: no room' : 'hinted') : row.mode);
const kind = (row) => (row.refused ? 'state bad' : row.withheld ? 'state warn' : 'state good');

function Decided({ caption, rows, name, filter, application = true }) {
  return html`<${Table} caption=${caption} empty="none is recorded." name=${name} filter=${filter} by=${(row) => row.decision_id} rows=${rows} columns=${[
    ['Decision', (row) => html`<${Id} id=${row.decision_id} href=${to('decisions', row.decision_id)} />`],
    ['At', (row) => when(row.at_ms), '', (row) => row.at_ms],
    application && ['Application', (row) => html`<a href=${to('applications', row.application_id)}>${row.application_id}</a>`, '', (row) => row.application_id],
    ['Groups', groups, 'g'],
    ['Queue', (row) => row.queue, '', (row) => row.queue],
    ['Policy', (row) => row.policy, '', (row) => row.policy],
    ['Outcome', (row) => html`<span class=${kind(row)}>${came(row)}</span>`, '', came],
    ['Hinted', (row) => row.hinted, 'n', (row) => row.hinted],
    ['No room', (row) => row.without_room, 'n', (row) => row.without_room],
    ['Expected gain', (row) => percent(row.expected_gain), 'n', (row) => row.expected_gain],
  ].filter(Boolean)} />`;
}

/** Its busiest link's load; a modelled one has a ~ before it. */
const busiest = (row) => (row.busiest_measured === false ? '~' : '') + percent(row.busiest_share);

export function Applications() {
  const { applications, applications_total: total, decisions, network } = doc.value;
  const { chosen } = place.value;
  const running = applications.filter((row) => row.application_id === chosen);
  const of = decisions.filter((row) => row.application_id === chosen);
  const off = new Set(network.links.filter((link) => !link.up).map((link) => link.id));
  const isDown = (row) => off.has(row.busiest_link);
  const links = network.links.filter((link) => link.users.some((user) => user.application_id === chosen));
  return html`
    ${chosen && html`<section aria-labelledby="application" class="panel"><h2 id="application"><code>${chosen}</code> <${Copy} text=${chosen} /></h2>
      ${!running.length && html`<p class="empty">It has no attempt that asked for hints and is not over.</p>`}
      ${running.map((row) => html`<${Facts} rows=${[
    ['Attempt', String(row.attempt)], ['Leases', String(row.leases)], ['Requests', String(row.requests)],
    ['Busiest link', row.busiest_link ? `${row.busiest_link} (${isDown(row) ? 'DOWN' : busiest(row)})` : '–', isDown(row) ? 'bad' : ''],
  ]} />`)}
      <${Decided} caption="Its latest decisions; each says whether it was followed" rows=${of} application=${false} />
      <${Table} caption="Links between switches on which it is one of the three largest" empty="it is on none." by=${(link) => link.id} rows=${links} columns=${[
    ['Link', (link) => html`<a href=${to('network', link.id)}>${link.id}</a>`],
    ['Its rate', (link) => bits(link.users.find((user) => user.application_id === chosen).bits_per_s), 'n'],
    ['Load', (link) => html`<${Load} link=${link} />`],
  ]} />
      <p><a href="#/applications">Close</a></p></section>`}
    <${Table} caption=${`${applications.length} of ${total} attempts that asked for hints and are not over, those with most leases first`} empty="none asked yet." name="applications"
      by=${(row) => row.application_id + ' ' + row.attempt} rows=${applications} columns=${[
    ['Application', (row) => html`<a href=${to('applications', row.application_id)} aria-current=${row.application_id === chosen ? 'true' : undefined}>${row.application_id}</a>`, '', (row) => row.application_id],
    ['Attempt', (row) => row.attempt, 'n'],
    ['Leases', (row) => row.leases, 'n', (row) => row.leases],
    ['Requests', (row) => row.requests, 'n', (row) => row.requests],
    ['Busiest link', (row) => (row.busiest_link ? html`<a href=${to('network', row.busiest_link)}>${row.busiest_link}</a>` : '–'), '', (row) => row.busiest_link],
    ['Its load', (row) => (!row.busiest_link ? '–' : isDown(row) ? html`<span class="state bad">DOWN</span>` : html`<${Bar} share=${row.busiest_share} label=${busiest(row)} age=${since()} />`), '', (row) => row.busiest_share],
  ]} />`;
}

export function Decisions() {
  const { decisions } = doc.value;
  const { chosen } = place.value;
  const wanted = filter.value.trim().toLowerCase();
  const has = (row) => [row.decision_id, row.application_id, row.request_id, row.queue, row.user, row.policy, came(row), groups(row)].some((text) => text.toLowerCase().includes(wanted));
  const rows = decisions.filter(has);
  return html`
    ${chosen && html`<${Explained} id=${chosen} />`}
    <${Filter} id="with" label="Only with" by=${filter} hint="application, queue, policy, outcome" />
    <${Decided} caption=${`${rows.length} of the latest ${decisions.length} decisions`} name="decisions" filter=${['with', filter]} rows=${rows} />`;
}

const seconds = (value) => (value == null ? '–' : number(value) + ' s');

function Explained({ id }) {
  const known = explained.value?.id === id ? explained.value : null;
  return html`<section aria-labelledby="decision" class="panel"><h2 id="decision">Decision <code>${id}</code> <${Copy} text=${id} /></h2>
    ${!known ? html`<p>Asking the daemon.</p>` : known.error ? html`<p class="alert">${known.error}</p>` : html`<${Found} found=${known.found} />`}
    <${Replay} id=${id} policy=${known?.found?.policy} />
    <p><a href="#/decisions">Close</a></p></section>`;
}

function Found({ found }) {
  const asked = [
    ['Application', html`<a href=${to('applications', found.application_id)}>${found.application_id}</a>, attempt ${found.attempt}`],
    ['Request', found.request_id], ['Queue', found.queue], ['Policy', found.policy], ['At', `${when(found.decided_at_ms)} (${zone()})`],
  ];
  if (found.refused) {
    return html`<${Facts} rows=${asked} /><p class="alert">Refused (${words(found.refused.reason)}): ${found.refused.message}</p><${Blocked} rows=${found.refused.blocked} />`;
  }
  const withheld = found.withheld;
  return html`<${Facts} rows=${[...asked,
    ['Mode', found.mode], ['Expected gain', percent(found.expected_gain)], ['Search', `${words(found.ended)}, ${found.steps} steps, ${number(found.elapsed_ms)} ms`],
    found.without_room > 0 && ['Without room', String(found.without_room), 'warn'],
    found.degraded.length > 0 && ['Did without', found.degraded.map(words).join(', '), 'warn'],
  ]} />
    ${withheld && html`<p class="note">Hints are withheld (${words(withheld.reason)}): the job's busiest link would be done after ${seconds(withheld.hinted_s)} with them, after ${seconds(withheld.default_s)} without.</p>`}
    <h3>Why there</h3><${Terms} caption="Cost terms: hints, and YARN's own placement as estimated; less is better" heads=${['Hints', 'YARN alone']} costs=${[found.cost, found.baseline]} />
    <${Outcome} found=${found} />
    <h3>What was ruled out</h3>
    <${Table} caption="Nodes ruled out" by=${(row) => row.group + row.reason} rows=${found.exclusions} columns=${[
    ['Group', (row) => row.group], ['Reason', (row) => words(row.reason)], ['Nodes', (row) => row.count, 'n'], ['For example', (row) => row.examples.join(', ')],
  ]} />
    <${Blocked} rows=${found.blocked} />
    <${Table} caption="How old its sources were" by=${(row) => row.source} rows=${found.ages} columns=${[
    ['Source', (row) => words(row.source)], ['Heard before', (row) => span(row.age_ms), 'n'], ['Fresh', (row) => (row.age_ms == null ? 'never received' : row.stale ? 'too old' : 'fresh')],
  ]} />`;
}

function Outcome({ found }) {
  const hosts = new Map();
  for (const hint of found.hints) {
    const name = hint.group + '\n' + hint.host;
    const row = hosts.get(name) ?? { group: hint.group, host: hint.host, racks: hint.racks, fallbacks: hint.fallbacks, count: 0 };
    row.count += 1;
    hosts.set(name, row);
  }
  const became = new Map((found.outcome?.hints ?? []).map((row) => [row.group + '\n' + row.host, row]));
  const rows = [...hosts.values()].map((row) => ({ ...row, became: became.get(row.group + '\n' + row.host) }));
  const missed = (row) => Object.entries(row.became?.misses ?? {}).map(([why, count]) => `${words(why)}: ${count}`).join(', ');
  // Where YARN put them: as nodes or their application told; what nobody told of is said.
  const places = (row) => [...(row.became?.came_to ?? []).map((place) => place.host + (place.count > 1 ? ` ${place.count}` : '')),
    row.became?.came_to_unknown > 0 && `${row.became.came_to_unknown} to hosts not kept`, row.became?.never > 0 && `${row.became.never} nobody told of`].filter(Boolean).join(', ') || '–';
  const figure = (name) => (row) => row.became?.[name] ?? '–';
  return html`<h3>Hints, and whether they were followed</h3>
    ${!found.outcome && found.hints.length > 0 && html`<p class="empty">What became of it is not kept, or no longer: the daemon keeps it for leases.answers_kept (10 min, if not configured) after its containers were seen. Sums by queue since the start still have it: <a href="#/queues">queues and policies</a>.</p>`}
    ${found.outcome_at && html`<p class="note">As this page saw it last, at ${clock(found.outcome_at)}: the daemon no longer keeps what became of it.</p>`}
    <${Table} caption=${`${found.hints.length} containers${found.outcome ? (found.outcome.settled ? ', settled' : ', awaited still') : ''}`} empty="no hint was given." by=${(row) => row.group + row.host} rows=${rows} columns=${[
    ['Host', (row) => row.host], ['Rack', (row) => row.racks[0] ?? '–'], ['Group', (row) => row.group], ['Containers', (row) => row.count, 'n'], ['Came to', places],
    ['On host', figure('on_host'), 'n'], ['In rack', figure('in_rack'), 'n'], ['Elsewhere', figure('elsewhere'), 'n'], ['Never', figure('never'), 'n'], ['Awaited', figure('open'), 'n'],
    ['Why not', missed], ['Next best', (row) => row.fallbacks.slice(0, 3).join(', ') || '–'],
  ]} />`;
}

const Blocked = ({ rows }) => rows.length > 0 && html`<${Table} caption="Why containers did not fit" by=${(row) => row.group + row.constraint} rows=${rows} columns=${[
  ['Group', (row) => row.group], ['Containers', (row) => row.count, 'n'], ['Most nodes lack', (row) => words(row.constraint) + (row.bound ? ` ${row.bound}` : '')],
  ['Nearest', (row) => row.nearest.map((near) => `${near.host}: ${near.lacks.map((lack) => words(lack.constraint) + (lack.short ? ` ${lack.short} ${lack.resource}` : '')).join(', ')}`).join('; ') || '–'],
]} />`;
