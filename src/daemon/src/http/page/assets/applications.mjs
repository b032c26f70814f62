// Applications, decisions, and one decision explained.
import { Bar, Copy, Facts, Filter, Id, Load, Panel, Table, bits, busier, clock, html, number, percent, span, when, words, zone } from './parts.mjs';
import { doc, explained, filter, place, since, to } from './state.mjs';
import { Replay, Terms } from './replay.mjs';

const groups = (row) => row.groups.map((group) => `${group.count} × ${group.name}`).join(', ');
const came = (row) => (row.refused ? 'refused: ' + words(row.refused) : row.late ? 'late: ' + words(row.late) : row.withheld ? 'withheld: ' + words(row.withheld) : row.mode === 'on' ? (row.without_room > 0 && !row.hinted ? 'waits: no room' : 'hinted') : row.mode === 'shadow' ? 'shadow: would have been hinted' : row.mode);
/** `3/12`: containers that came to their host, of those that were hinted. */
const followed = ({ followed: of }) => (of ? `${of.on_host}/${of.hinted}${of.awaited ? `, ${of.awaited} awaited` : ''}` : '–');
const kind = (row) => (row.refused || row.late ? 'state bad' : row.withheld ? 'state warn' : 'state good');

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
    ['Followed', followed, 'n', (row) => row.followed && row.followed.on_host / Math.max(1, row.followed.hinted)],
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
    ${chosen && html`<${Panel} id="application" close="#/applications" title=${html`<code>${chosen}</code> <${Copy} text=${chosen} />`}>
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
  ]} /><//>`}
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
    <${Decided} caption=${`${rows.length} of the latest ${decisions.length} decisions and refusals`} name="decisions" filter=${['with', filter]} rows=${rows} />
    <${Unrecorded} />`;
}

/** Refusals that no row above is of: they left no record, or it is not among the latest. */
function Unrecorded() {
  const { refused } = doc.value;
  const [all, recorded] = [refused.reduce((sum, row) => sum + row.requests, 0), refused.reduce((sum, row) => sum + row.recorded, 0)];
  const others = refused.filter((row) => row.requests > row.recorded).map((row) => `${row.requests - row.recorded} ${words(row.reason)}`).join(', ');
  if (!all) return null;
  return html`<p class="note" id="unrecorded">${all} requests were refused since the start, of which ${recorded} are recorded; above are the latest.${others && html` The others (${others}) left no record, or it went to make room: <a href="#/configuration">who was refused most</a>.`}</p>`;
}

const seconds = (value) => (value == null ? '–' : number(value) + ' s');

function Explained({ id }) {
  const known = explained.value?.id === id ? explained.value : null;
  return html`<${Panel} id="decision" close="#/decisions" title=${html`Decision <code>${id}</code> <${Copy} text=${id} />`}>
    ${!known ? html`<p>Asking the daemon.</p>` : known.error ? html`<p class="alert">${known.error}</p>` : html`<${Found} found=${known.found} />`}
    <${Replay} id=${id} policy=${known?.found?.policy} /><//>`;
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
    ${found.late && html`<p class="alert">Too late: the answer was made ${found.late === 'deadline' ? 'after the request’s deadline had passed' : 'after its caller had hung up'}. YARN never saw it; a repeat of the request within leases.answers_kept gets it.</p>`}
    ${withheld && html`<p class="note">Hints are withheld (${words(withheld.reason)}): the job's busiest link would be done after ${seconds(withheld.hinted_s)} with them, after ${seconds(withheld.default_s)} without.</p>`}
    ${found.mode === 'shadow' && found.hints.length > 0 && html`<p class="note">The queue is in shadow: this would have been hinted, and nothing was sent to YARN.</p>`}
    ${allTheSame(found) && html`<p class="note">${allTheSame(found)}</p>`}
    <h3>Why there</h3><${Terms} caption="Cost terms: hints, and YARN's own placement as estimated; less is better" heads=${['Hints', 'YARN alone']} costs=${[found.cost, found.baseline]} />
    <${CostLinks} found=${found} />
    <${BaselinePlaces} found=${found} />
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

/** `l1 (edge-1 to core-1)`; a rack's uplinks count as one. */
function linkWords(link) {
  if (!link) return 'none is used';
  const way = link.from && link.to ? `${link.from} to ${link.to}` : link.from ? `out of ${link.from}` : `into ${link.to}`;
  const more = link.links_total - link.links.length;
  const named = link.links.map((id, at) => html`${at > 0 ? ', ' : ''}<a href=${to('network', id)}>${id}</a>`);
  return html`${named.length ? named : 'no network is known'}${more > 0 && ` and ${more} more`}${link.links_total > 1 && ' together'} (${way}), ${seconds(link.seconds)}`;
}

/** Which links the costs above are of. */
function CostLinks({ found }) {
  const kinds = [['Busiest link', 'busiest', 'by hosts\' links and racks\' uplinks alone, beside what is there already: what placements are compared by'],
    ['Worst link', 'worst', 'on the network\'s own paths, with nothing else on them']];
  const rows = kinds.filter(([, kind]) => found.links?.[kind] || found.baseline_links?.[kind]);
  if (!rows.length) return null;
  return html`<${Table} caption="Which links those costs are of" by=${([name]) => name} rows=${rows} columns=${[
    ['Link', ([name]) => name], ['Hints', ([, kind]) => linkWords(found.links?.[kind])],
    ['YARN alone', ([, kind]) => (found.baseline ? linkWords(found.baseline_links?.[kind]) : '–')], ['Reckoned', ([, , how]) => how],
  ]} />`;
}

/** Where YARN would put the containers by itself: what its costs are estimated on. */
function BaselinePlaces({ found }) {
  const places = found.baseline_places;
  if (!places?.places.length) return null;
  const more = places.more_hosts > 0 ? `, and ${places.more_containers} containers on ${places.more_hosts} more` : '';
  return html`<${Table} caption=${`Where YARN would put them by itself, as estimated${more}`} by=${(row) => row.group + row.host} rows=${places.places} columns=${[
    ['Group', (row) => row.group], ['Host', (row) => row.host], ['Rack', (row) => row.rack], ['Containers', (row) => row.count, 'n'],
  ]} />`;
}

/** Why hints are given though they gain next to nothing; as hintctl explain says it. */
function allTheSame(found) {
  if (!found.hints.length || (found.expected_gain != null && found.expected_gain >= 0.1)) return '';
  const hinted = found.mode === 'shadow' ? 'Would have been hinted (shadow)' : 'Hinted';
  if (found.unguarded_why) return `${hinted} whatever the gain is, without the guard (placer.guard): ${found.unguarded_why}.`;
  const [mine, yarns] = [found.links?.busiest?.seconds ?? 0, found.baseline_links?.busiest?.seconds];
  return found.expected_gain != null && mine < yarns
    ? `${hinted} though the gain by ${found.policy}'s own objective is ${percent(found.expected_gain)}, for the guard (placer.guard) goes by the busiest link: done after ${seconds(mine)} with the hints, after ${seconds(yarns)} where YARN puts the containers by itself.`
    : '';
}

/** What YARN did instead, group by group: how many came where they were hinted, and where the others came. */
function Instead({ found }) {
  const groups = new Map();
  for (const hint of found.outcome?.hints ?? []) {
    const row = groups.get(hint.group) ?? { group: hint.group, all: 0, followed: 0, came: 0, others: new Map() };
    row.all += hint.count;
    row.followed += hint.on_host;
    row.came += hint.on_host + hint.in_rack + hint.elsewhere;
    for (const place of hint.came_to) if (place.host !== hint.host) row.others.set(place.host, (row.others.get(place.host) ?? 0) + place.count);
    if (hint.came_to_unknown > 0) row.others.set('hosts not kept', (row.others.get('hosts not kept') ?? 0) + hint.came_to_unknown);
    groups.set(hint.group, row);
  }
  const rows = [...groups.values()].filter((row) => row.came > 0);
  const others = (row) => [...row.others].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([host, count]) => host + (count > 1 ? ` ${count}` : '')).join(', ')
    + (row.others.size > 6 ? ` and ${row.others.size - 6} more hosts` : '') || '–';
  if (!rows.length) return null;
  return html`<${Table} caption=${found.mode === 'shadow' ? 'What YARN did by itself' : 'What YARN did instead'} by=${(row) => row.group} rows=${rows} columns=${[
    ['Group', (row) => row.group], [found.mode === 'shadow' ? 'Came where it would have been hinted' : 'Followed', (row) => `${row.followed} of ${row.all}`], ['The others came to', others],
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
  return html`<h3>${found.mode === 'shadow' ? 'What would have been hinted, and what YARN did' : 'Hints, and whether they were followed'}</h3>
    <${Instead} found=${found} />
    ${!found.outcome && found.hints.length > 0 && html`<p class="empty">${found.followed && `${found.followed.on_host} of ${found.followed.hinted} came to their host. `}What else became of it is not kept, or no longer: the daemon keeps it for leases.answers_kept (10 min, if not configured) after its containers were seen. Sums by queue since the start still have it: <a href="#/queues">queues and policies</a>.</p>`}
    ${found.outcome_at && html`<p class="note">As this page saw it last, at ${clock(found.outcome_at)}: the daemon no longer keeps what became of it.</p>`}
    <${Table} caption=${`${found.hints.length} containers${found.outcome ? (found.outcome.settled ? ', settled' : ', awaited still') : ''}`} empty=${found.mode === 'shadow' ? 'nothing would have been hinted.' : 'no hint was given.'} by=${(row) => row.group + row.host} rows=${rows} columns=${[
    ['Host', (row) => row.host], ['Rack', (row) => row.racks[0] ?? '–'], ['Group', (row) => row.group], ['Containers', (row) => row.count, 'n'], ['Came to', places],
    ['On host', figure('on_host'), 'n'], ['In rack', figure('in_rack'), 'n'], ['Elsewhere', figure('elsewhere'), 'n'], ['Never', figure('never'), 'n'], ['Awaited', figure('open'), 'n'],
    ['Why not', missed], ['Next best', (row) => row.fallbacks.slice(0, 3).join(', ') || '–'],
  ]} />`;
}

const Blocked = ({ rows }) => rows.length > 0 && html`<${Table} caption="Why containers did not fit" by=${(row) => row.group + row.constraint} rows=${rows} columns=${[
  ['Group', (row) => row.group], ['Containers', (row) => row.count, 'n'], ['Most nodes lack', (row) => words(row.constraint) + (row.bound ? ` ${row.bound}` : '')],
  ['Nearest', (row) => row.nearest.map((near) => `${near.host}: ${near.lacks.map((lack) => words(lack.constraint) + (lack.short ? ` ${lack.short} ${lack.resource}` : '')).join(', ')}`).join('; ') || '–'],
]} />`;
