// Applications, decisions, and one decision explained.
import { signal } from './vendor/signals-core.mjs';
import { Bar, Copy, Facts, Filter, Glossary, Id, Load, Panel, Table, byName, bytes, clock, count, fresh, html, isSorted, lacking, letGo, modelled, number, percent, shares, span, time, ways, when, words, zone } from './parts.mjs';
import { decided, doc, explained, filter, onlyMissed, place, since, to } from './state.mjs';
import { Replay, Terms } from './replay.mjs';

const groups = (row) => row.groups.map((group) => `${group.count} × ${group.name}`).join(', ');
const outcome = (row) => (row.refused ? 'refused: ' + words(row.refused) : row.late ? 'late: ' + words(row.late) : row.withheld ? 'withheld: ' + words(row.withheld) : row.mode === 'on' ? (row.without_room > 0 && !row.hinted ? 'waits: no room' : 'hinted') : row.mode === 'shadow' ? 'shadow: would have been hinted' : row.mode);
const came = (row) => outcome(row) + (row.without_room > 0 && row.hinted ? `, ${row.without_room} without room` : '');
/** `3/12`: containers that came to their host, of those that were hinted, and why most others did not. */
const followed = ({ followed: of }) => (of ? `${of.on_host}/${of.hinted}${of.awaited ? `, ${of.awaited} awaited` : ''}` : '–');
/** Hinted containers that came to another host, or will never come; in a queue in shadow nobody was told. */
const missed = ({ mode, followed: of }) => (of && mode === 'on' ? Math.max(0, of.hinted - of.on_host - of.awaited) : 0);

/** Decisions whose folds are open: by its members a fold stays open as newer ones join it and old ones leave. */
const unfolded = signal(new Set());
const isOpen = (run) => run.some((one) => unfolded.value.has(one.decision_id));
function fold(run) {
  const open = new Set(unfolded.value);
  const was = isOpen(run);
  for (const { decision_id: id } of run) was ? open.delete(id) : open.add(id);
  letGo(); // what was opened stands where it belongs
  unfolded.value = open;
}

const isWhole = (row) => row.followed?.hinted > 0 && row.followed.on_host === row.followed.hinted && row.mode === 'on' && !row.refused && !row.late && !row.withheld && !row.without_room;
/** So many decisions on end of an application are one row. */
const FOLDED_MIN = 3;
/** Rows of an application's decisions on end, newest first, that were all followed to the letter, as one: there is nothing to see. */
function folded(rows) {
  const runs = new Map();
  const of = new Map();
  for (const row of rows) {
    const key = row.application_id + ' ' + row.attempt + ' ' + row.policy;
    if (!isWhole(row)) { runs.delete(key); continue; }
    if (!runs.has(key)) runs.set(key, []);
    runs.get(key).push(row);
    of.set(row, runs.get(key));
  }
  return rows.flatMap((row) => {
    const run = of.get(row);
    if (!run || run.length < FOLDED_MIN) return [row];
    if (run[0] !== row) return [];
    const oldest = run.at(-1);
    const sum = (figure) => run.reduce((all, one) => all + figure(one), 0);
    const all = new Map();
    for (const group of run.flatMap((one) => one.groups)) all.set(group.name, (all.get(group.name) ?? 0) + group.count);
    const id = 'fold ' + oldest.decision_id;
    const head = { ...row, decision_id: id, run, oldest, hinted: sum((one) => one.hinted), groups: [...all].map(([name, many]) => ({ name, count: many })),
      followed: { on_host: sum((one) => one.followed.on_host), hinted: sum((one) => one.followed.hinted), awaited: 0, reason: '' } };
    return isOpen(run) ? [head, ...run] : [head];
  });
}

const Fold = ({ row }) => html`<button type="button" class="fold" aria-expanded=${String(isOpen(row.run))} onClick=${() => fold(row.run)}><span aria-hidden="true">${isOpen(row.run) ? '▾' : '▸'}</span> ${row.run.length} decisions, all followed</button>`;
/** The least and the greatest. */
const savings = (run) => {
  const known = run.map((row) => row.expected_gain).filter((gain) => gain != null).sort((a, b) => a - b);
  if (!known.length) return '–';
  const [least, most] = [percent(known[0]), percent(known.at(-1))];
  return least === most ? least : `${least} to ${most}`;
};
const kind = (row) => (row.refused || row.late ? 'state bad' : row.withheld ? 'state warn' : 'state good');

/** Rows that are shown at first. */
const FEW = 50;

/** Decisions that are searched or sorted stand each by itself. */
function Decided({ caption, rows, name, filter, empty = 'none is recorded.', application = true }) {
  const isFolded = !isSorted(name) && !(filter && (filter[1].value.trim() || onlyMissed.value));
  return html`<${Table} caption=${caption} empty=${empty} name=${name} filter=${filter} few=${FEW} by=${(row) => row.decision_id} rows=${isFolded ? folded(rows) : rows} columns=${[
    ['Decision', (row) => (row.run ? html`<${Fold} row=${row} />` : html`<${Id} id=${row.decision_id} href=${to('decisions', row.decision_id)} />`)],
    ['At', (row) => (row.run ? `${when(row.oldest.at_ms)} to ${when(row.at_ms)}` : when(row.at_ms)), '', (row) => row.at_ms],
    application && ['Application', (row) => html`<a class="short" href=${to('applications', row.application_id)}>${row.application_id}</a>`, '', (row) => row.application_id],
    ['Groups', groups, 'g'],
    ['Queue, policy', (row) => html`${row.queue}<br />${row.policy}`, '', (row) => row.queue + ' ' + row.policy],
    ['Outcome', (row) => html`<span class=${kind(row)}>${came(row)}</span>`, '', came],
    ['Hinted', (row) => row.hinted, 'n', (row) => row.hinted],
    ['Followed', (row) => html`<span class=${missed(row) ? 'state warn' : ''}>${followed(row)}</span>${row.followed?.reason && html`<div class="reason">${words(row.followed.reason)}</div>`}`, 'n', (row) => row.followed && row.followed.on_host / Math.max(1, row.followed.hinted)],
    ['Objective lower by', (row) => (row.run ? savings(row.run) : percent(row.expected_gain)), 'n', (row) => row.expected_gain],
  ].filter(Boolean)} />`;
}

/** Its busiest link's load; a modelled one has a ~ before it. */
const busiest = (row) => (row.busiest_measured === false ? '~' : '') + percent(row.busiest_share);

/** Less than this share of a link is not told of. */
const LEAST = 1e-3;
/** Attempts that ended so long ago are listed still. */
const ENDED_MS = 600_000;
/** And no more of them than these, the latest. */
const ENDED_MAX = 50;
const bytesOf = (user) => [user.a_to_b_bytes, user.b_to_a_bytes];
const ratesOf = (user) => [user.a_to_b_bits_per_s, user.b_to_a_bits_per_s];

/** Attempts that have decisions of the last ten minutes and are held no more; where not all that are held are here, nobody can say. */
function over(held, decisions, total) {
  if (held.length < total) return [];
  const key = (row) => row.application_id + ' ' + row.attempt;
  const known = new Set(held.map(key));
  const found = new Map();
  for (const row of decisions) {
    if (known.has(key(row)) || doc.value.at_ms - row.at_ms > ENDED_MS) continue;
    const one = found.get(key(row)) ?? { application_id: row.application_id, attempt: row.attempt, requests: 0, at_ms: row.at_ms, ended: true };
    one.requests += 1;
    found.set(key(row), one);
  }
  return [...found.values()].slice(0, ENDED_MAX);
}

/** Decisions of the document by application and attempt: whose it is, its queue, and how its hints were followed. */
function known(decisions) {
  const found = new Map();
  for (const row of decisions) {
    const key = row.application_id + ' ' + row.attempt;
    const one = found.get(key) ?? { user: row.user, queue: row.queue, missed: 0, on_host: 0, hinted: 0 };
    one.missed += missed(row);
    one.on_host += row.mode === 'on' ? row.followed?.on_host ?? 0 : 0;
    one.hinted += row.mode === 'on' ? row.followed?.hinted ?? 0 : 0;
    found.set(key, one);
  }
  return found;
}

/** Of what its busiest link carries its own share, in the direction that is busier of those in which it sends; null: it is not told. */
function ownShare(row, links) {
  const link = links.get(row.busiest_link);
  const user = link?.users.find((one) => one.application_id === row.application_id && one.attempt === row.attempt);
  if (!user) return null;
  const way = [0, 1].filter((one) => bytesOf(user)[one] > 0).sort((a, b) => shares(link)[b] - shares(link)[a])[0];
  return way == null || !ratesOf(user)[way] ? null : ratesOf(user)[way] / Math.max(1, link.bits_per_s);
}

/** Its own share as a bar; the link's load, which is everybody's, in words. */
function OwnLoad({ row, links }) {
  const own = ownShare(row, links);
  const link = links.get(row.busiest_link);
  if (own) return html`<${Bar} share=${own} label=${'~' + percent(own)} kind="one" age=${since()} />`;
  return html`<span class="way">${!link ? 'not told: a host\'s link' : link.users_total > link.users.length ? `less than the ${link.users.length} that send most` : 'not known'}</span>`;
}

/** In which direction its busiest link is so loaded, and what of that is its own. */
function busiestWords(row, sends) {
  const most = sends.filter(({ link }) => link.id === row.busiest_link).sort((a, b) => shares(b.link)[b.way] - shares(a.link)[a.way])[0];
  if (!most) return `, ${busiest(row)} used in a direction in which it sends`;
  return `, ${ways(most.link)[most.way]}: ${busiest(row)} used${most.share ? `, its own share ${percent(most.share)}` : ''}`;
}

/** An application's decisions: all that are recorded, as soon as the daemon has told them; until then those among the latest of all. */
function DecidedOf({ id, rows }) {
  const known = decided.value?.id === id ? decided.value : null;
  const all = known?.decisions;
  const among = `the latest ${doc.value.decisions.length} of all applications`;
  const older = Math.max(0, (doc.value.status.counters.records_kept ?? 0) - doc.value.decisions.length);
  const empty = !known ? `none among ${among}; asking for older ones.` : all ? 'none is recorded.' : `none among ${among}; ${older} older ones are recorded, hintctl decisions --application ${id} searches them.`;
  const caption = all ? (known.total > all.length ? `Its latest ${all.length} of ${known.total} decisions` : `Its decisions, ${all.length}`) : `Its decisions among ${among}`;
  return html`<${Decided} caption=${`${caption}; each says whether it was followed`} rows=${all ?? rows} empty=${empty} name="decided" application=${false} />`;
}

export function Applications() {
  const { applications, applications_total: total, decisions, network } = doc.value;
  const { chosen } = place.value;
  const running = applications.filter((row) => row.application_id === chosen);
  const off = new Set(network.links.filter((link) => !link.up).map((link) => link.id));
  const isDown = (row) => off.has(row.busiest_link);
  const sends = network.links.flatMap((link) => link.users.filter((user) => user.application_id === chosen).flatMap((user) => [0, 1].filter((way) => bytesOf(user)[way] > 0 || ratesOf(user)[way] > 0).map((way) => ({ link, user, way, share: ratesOf(user)[way] / Math.max(1, link.bits_per_s) }))));
  // Of what is next to nothing there is a count. The rate of one that never sent there is not known.
  const shown = sends.filter(({ share, user, way }) => share >= LEAST || (!share && bytesOf(user)[way] > 0)).sort((a, b) => b.share - a.share);
  const ended = over(applications, decisions, total);
  const about = known(decisions);
  const of = (row) => about.get(row.application_id + ' ' + row.attempt);
  const every = [...applications, ...ended];
  const rows = onlyMissed.value ? every.filter((row) => of(row)?.missed > 0) : every;
  const links = new Map(network.links.map((link) => [link.id, link]));
  const down = network.links.filter((link) => !link.up && link.carried?.applications.some((of) => of.application_id === chosen));
  return html`
    ${chosen && html`<${Panel} id="application" close="#/applications" title=${html`<code>${chosen}</code> <${Copy} text=${chosen} />`}>
      ${!running.length && html`<p class="empty">It has no attempt that asked for hints and is not over: it has ended, or never asked.</p>`}
      ${down.length > 0 && html`<p class="alert warn">Its routes went over ${down.map((link, at) => html`${at > 0 && ', '}<a href=${to('network', link.id)}>${link.id}</a>`)}, which is down.</p>`}
      ${running.map((row) => html`<${Facts} rows=${[
    ['Attempt', String(row.attempt)], of(row) && ['User', of(row).user], of(row) && ['Queue', of(row).queue], ['Leases', String(row.leases)], ['Requests', String(row.requests)],
    ['Busiest link that it sends over', row.busiest_link ? html`<a href=${to('network', row.busiest_link)}>${row.busiest_link}</a>${isDown(row) ? ': DOWN' : busiestWords(row, sends)}` : '–', isDown(row) ? 'bad' : ''],
  ]} />`)}
      <${DecidedOf} id=${chosen} rows=${decisions.filter((row) => row.application_id === chosen)} />
      <${Table} name="sends" caption="Where it sends between switches, of links on which it is one of the three largest; its rate is modelled" empty=${sends.length ? 'nothing that is a thousandth of a link.' : 'it is on none.'} by=${({ link, way }) => link.id + way} rows=${shown} columns=${[
    ['Link', ({ link }) => html`<a href=${to('network', link.id)}>${link.id}</a>`],
    ['Direction', ({ link, way }) => ways(link)[way]],
    ['Its own rate', ({ user, way }) => (ratesOf(user)[way] ? modelled(ratesOf(user)[way]) : 'not known'), 'n', ({ user, way }) => ratesOf(user)[way]],
    ['Its own share', ({ share }) => (share ? percent(share) : '–'), 'n', ({ share }) => share],
    ['Load of the link, of all', ({ link, way }) => html`<${Load} link=${link} way=${way} />`, '', ({ link, way }) => (link.up ? shares(link)[way] : null)],
  ]} />${sends.length > shown.length && shown.length > 0 && html`<p class="empty">${count(sends.length - shown.length, 'direction')} more where it sends less than a thousandth of what the link carries at most.</p>`}<//>`}
    <${OnlyMissed} what="applications" />
    <${Table} few=${FEW} caption=${onlyMissed.value ? `${rows.length} of ${every.length} applications have hints that YARN did not follow, by the latest ${decisions.length} decisions of all` : `${applications.length} of ${total} attempts that asked for hints and are not over, those with most leases first${ended.length ? `, and the ${ended.length === 1 ? 'one' : ended.length} that asked last and ended, within ten minutes` : ''}; user, queue and what was followed are by the latest ${decisions.length} decisions of all`} empty=${onlyMissed.value ? 'of the latest decisions all hints were followed; older ones are not looked at.' : 'none asked yet.'} name="applications"
      by=${(row) => row.application_id + ' ' + row.attempt} rows=${rows} columns=${[
    ['Application', (row) => html`<a class="short" href=${to('applications', row.application_id)} aria-current=${row.application_id === chosen ? 'true' : undefined}>${row.application_id}</a>`, '', (row) => row.application_id],
    ['Attempt', (row) => row.attempt, 'n'],
    ['User, queue', (row) => (of(row) ? html`${of(row).user}<br />${of(row).queue}` : '–'), '', (row) => of(row) && of(row).user + ' ' + of(row).queue],
    ['State', (row) => html`<span class=${'state ' + (row.ended ? 'off' : 'good')}>${row.ended ? `ended; decided ${when(row.at_ms)}` : 'runs'}</span>`, 'g', (row) => (row.ended ? 'ended' : 'runs')],
    ['Leases', (row) => row.leases ?? '–', 'n', (row) => row.leases],
    ['Requests', (row) => row.requests, 'n', (row) => row.requests],
    ['Followed', (row) => (of(row)?.hinted ? html`<span class=${of(row).missed ? 'state warn' : ''}>${of(row).on_host}/${of(row).hinted}</span>` : '–'), 'n', (row) => (of(row)?.hinted ? of(row).on_host / of(row).hinted : null)],
    ['Busiest link', (row) => (row.busiest_link ? html`<a href=${to('network', row.busiest_link)}>${row.busiest_link}</a>` : '–'), '', (row) => row.busiest_link],
    ['Its own share', (row) => (!row.busiest_link || isDown(row) ? '–' : html`<${OwnLoad} row=${row} links=${links} />`), '', (row) => (row.busiest_link ? ownShare(row, links) : null)],
    ['Load of all', (row) => (!row.busiest_link ? '–' : isDown(row) ? html`<span class="state bad">DOWN</span>` : busiest(row)), 'n', (row) => row.busiest_share],
  ]} />`;
}

export function Decisions() {
  const { decisions } = doc.value;
  const { chosen } = place.value;
  const wanted = filter.value.trim().toLowerCase();
  const has = (row) => [row.decision_id, row.application_id, row.request_id, row.queue, row.user, row.policy, came(row), groups(row)].some((text) => text.toLowerCase().includes(wanted));
  const found = decisions.filter(has);
  const rows = onlyMissed.value ? found.filter(missed) : found;
  return html`
    ${chosen && html`<${Explained} id=${chosen} />`}
    <${Filter} id="with" label="Only with" by=${filter} hint="application, queue, policy, outcome" />
    <${OnlyMissed} what="decisions" />
    <${Decided} caption=${onlyMissed.value ? `${rows.length} of the latest ${decisions.length} decisions and refusals have containers that YARN put elsewhere, or never started` : `${rows.length} of the latest ${decisions.length} decisions and refusals`} name="decisions" filter=${['with', filter]}
      empty=${onlyMissed.value ? 'of these decisions all hints were followed; older ones are not looked at.' : 'none is recorded.'} rows=${rows} />
    ${(wanted || onlyMissed.value) && html`<${Older} text=${filter.value.trim()} found=${rows.length} />`}
    <${Glossary} of=${['followed', 'not followed', 'objective', 'objective lower by', 'awaited', 'settled', 'withheld', 'withdrawn']} />
    <${Unrecorded} />`;
}

/** Narrows decisions and applications to those of which not all was followed. */
const OnlyMissed = ({ what }) => html`<p class="filter"><label><input type="checkbox" id="missed" checked=${onlyMissed.value} onChange=${(event) => { onlyMissed.value = event.currentTarget.checked; }} /> Only ${what} with containers that were not followed</label></p>`;

/** What the search above did not look at. */
function Older({ text, found }) {
  const shown = doc.value.decisions.length;
  const older = Math.max(0, (doc.value.status.counters.records_kept ?? 0) - shown);
  if (!older) return null;
  const isApplication = /^application_\d+_\d+$/.test(text);
  return html`<p class="note" id="older">${found ? 'Searched were' : 'Not among'} the latest ${shown}${found ? ' alone' : ''}; ${older} older ones are recorded. ${isApplication ? html`<a href=${to('applications', text)}>All of ${text}</a>` : 'The whole id of an application, typed here, leads to all of it'}. Sums since the start are in <a href="#/queues">queues and policies</a>.</p>`;
}

/** Refusals that no row above is of: they left no record, or it is not among the latest. */
function Unrecorded() {
  const { refused } = doc.value;
  const [all, recorded] = [refused.reduce((sum, row) => sum + row.requests, 0), refused.reduce((sum, row) => sum + row.recorded, 0)];
  const others = refused.filter((row) => row.requests > row.recorded).map((row) => `${row.requests - row.recorded} ${words(row.reason)}`).join(', ');
  if (!all) return null;
  return html`<p class="note" id="unrecorded">${all} requests were refused since the start; ${recorded} of them are recorded, the latest above.${others && html` The others (${others}) left no record, or it went to make room: <a href="#/configuration">who was refused most</a>.`}</p>`;
}

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
    ['Mode', found.mode], ...gains(found), ['Search', `${words(found.ended)}, ${found.steps} steps, ${number(found.elapsed_ms)} ms`],
    found.without_room > 0 && ['Without room', String(found.without_room), 'warn'],
    found.degraded.length > 0 && ['Not known', lacking(found.degraded), 'warn'],
  ]} />
    ${found.late && html`<p class="alert">Too late: the answer was made ${found.late === 'deadline' ? 'after the request’s deadline had passed' : 'after its caller had hung up'}. YARN never saw it; a repeat of the request within leases.answers_kept gets it.</p>`}
    ${withheld && html`<p class="note">Hints are withheld (${words(withheld.reason)}): the job's busiest link would be done after ${time(withheld.hinted_s)} with them, after ${time(withheld.default_s)} without.</p>`}
    ${found.mode === 'shadow' && found.hints.length > 0 && html`<p class="note">The queue is in shadow: this would have been hinted, and nothing was sent to YARN.</p>`}
    ${allTheSame(found) && html`<p class="note">${allTheSame(found)}</p>`}
    <${ByRack} found=${found} />
    <h3>Why there</h3><${Because} found=${found} /><${Terms} caption="Cost terms: hints, and YARN's own placement as estimated; less is better" heads=${['Hints', 'YARN alone']} costs=${[found.cost, found.baseline]} />
    <${CostLinks} found=${found} />
    <${BaselinePlaces} found=${found} />
    <${Outcome} found=${found} />
    <h3>What was ruled out</h3>
    <${Table} caption="Nodes ruled out" by=${(row) => row.group + row.reason} rows=${found.exclusions} columns=${[
    ['Group', (row) => row.group], ['Reason', (row) => words(row.reason)], ['Nodes', (row) => row.count, 'n'], ['For example', (row) => row.examples.join(', ')],
  ]} />
    <${Blocked} rows=${found.blocked} />
    <${Table} caption="How old its sources were" by=${(row) => row.source} rows=${found.ages} columns=${[
    ['Source', (row) => words(row.source)], ['Heard before', (row) => span(row.age_ms), 'n'], ['Fresh', (row) => fresh(row)[0]],
  ]} />`;
}

const saves = (share, before, after, unit) => `${percent(share)}${before != null && after != null ? `: ${unit(after)} in place of ${unit(before)}` : ''}`;

/** An objective that is its busiest link's seconds is a time; others have no unit. */
const isTime = (cost) => cost?.objective != null && cost.objective === cost['part.busiest_link_s'];

/** What hints were to save by each measure, each by its name: the deciding policy's own, and bytes. */
function gains({ expected_gain: gain, cost, baseline, policy }) {
  const bytesSaved = cost?.cross_rack_bytes != null && baseline?.cross_rack_bytes > 0;
  return [
    [`${isTime(cost) ? 'Time on the busiest link' : `Objective of policy ${policy}`} saved (expected)`, gain == null ? '–' : saves(gain, baseline?.objective, cost?.objective, isTime(cost) ? time : number)],
    bytesSaved && ['Cross-rack bytes saved (expected)', saves(1 - cost.cross_rack_bytes / baseline.cross_rack_bytes, baseline.cross_rack_bytes, cost.cross_rack_bytes, bytes)],
  ];
}

/** Containers by rack, those with most first. */
function ByRack({ found }) {
  const racks = new Map();
  for (const hint of found.hints) {
    const name = hint.racks[0] ?? 'not named';
    const row = racks.get(name) ?? { name, count: 0, hosts: new Set(), groups: new Map() };
    row.count += 1;
    row.hosts.add(hint.host);
    row.groups.set(hint.group, (row.groups.get(hint.group) ?? 0) + 1);
    racks.set(name, row);
  }
  if (!racks.size) return null;
  const rows = [...racks.values()].sort((a, b) => b.count - a.count || byName(a.name, b.name));
  return html`<${Table} caption=${found.mode === 'shadow' ? 'Where it would have been hinted, by rack' : 'Where it is hinted, by rack'} by=${(row) => row.name} rows=${rows} columns=${[
    ['Rack', (row) => row.name], ['Containers', (row) => `${row.count} of ${found.hints.length}`, 'n'],
    ['Groups', (row) => [...row.groups].map(([name, many]) => `${many} × ${name}`).join(', ')], ['Hosts', (row) => row.hosts.size, 'n'],
  ]} />`;
}

const TERMS = [['busiest_link', 'its busiest link', time], ['worst_link_s', 'its worst link', time], ['remote_bytes', 'remote bytes', bytes], ['cross_rack_bytes', 'cross-rack bytes', bytes], ['core_hops', 'core hops', number], ['balance', 'balance', number]];

/** In a sentence: what the places gain of the time that they were chosen by, or else the term in which they differ most from YARN's own. */
function Because({ found }) {
  if (!found.cost || !found.baseline) return null;
  const [mine, yarns] = [found.links?.busiest, found.baseline_links?.busiest];
  const of = (costs, link, name) => (name === 'busiest_link' ? link?.seconds ?? costs['part.busiest_link_s'] : costs[name]);
  const terms = TERMS.map(([name, said, unit]) => ({ name, said, unit, here: of(found.cost, mine, name), there: of(found.baseline, yarns, name) })).filter((term) => term.here != null && term.there != null);
  const better = terms.filter((term) => term.there > term.here).sort((a, b) => (1 - b.here / b.there) - (1 - a.here / a.there));
  const most = better.find((term) => term.name === 'busiest_link' && isTime(found.cost)) ?? better[0];
  if (!most) return html`<p id="because">By none of the terms below are these places better than where YARN would put the containers by itself.</p>`;
  const { name, said, unit, here, there } = most;
  const way = (link) => (link?.from && link.to ? ` ${link.from} → ${link.to}` : link?.links.length ? ' ' + link.links[0] : '');
  return html`<p id="because">${name === 'busiest_link' ? `Where YARN would put them by itself, the busiest link${way(yarns)} would be done in ${unit(there)}; ${mine || here ? `here the busiest${way(mine)} is done in ${unit(here)}` : 'here none is used'}.`
    : `These places differ most from where YARN would put them by itself in ${said}: ${unit(here)} here, ${unit(there)} there.`}</p>`;
}

/** `l1 (edge-1 to core-1)`; a rack's uplinks count as one. */
function linkWords(link) {
  if (!link) return 'none is used';
  const way = link.from && link.to ? `${link.from} to ${link.to}` : link.from ? `out of ${link.from}` : `into ${link.to}`;
  const more = link.links_total - link.links.length;
  const named = link.links.map((id, at) => html`${at > 0 ? ', ' : ''}<a href=${to('network', id)}>${id}</a>`);
  return html`${named.length ? named : 'no network is known'}${more > 0 && ` and ${more} more`}${link.links_total > 1 && ' together'} (${way}), ${time(link.seconds)}`;
}

/** Which links the costs above are of. */
function CostLinks({ found }) {
  const kinds = [['Busiest link', 'busiest', 'by hosts\' links and racks\' uplinks alone, beside what is there already: what placements are compared by'],
    ['Worst link', 'worst', 'on the network\'s own paths, with nothing else on them']];
  const rows = kinds.filter(([, kind]) => found.links?.[kind] || found.baseline_links?.[kind]);
  if (!rows.length) return null;
  return html`<${Table} caption="Which links those costs are of" by=${([name]) => name} rows=${rows} columns=${[
    ['Link', ([name]) => name], ['Hints', ([, kind]) => linkWords(found.links?.[kind])],
    ['YARN alone', ([, kind]) => (found.baseline ? linkWords(found.baseline_links?.[kind]) : '–')], ['How it is computed', ([, , how]) => how],
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
    ? `${hinted} though the gain by ${found.policy}'s own objective is ${percent(found.expected_gain)}, for the guard (placer.guard) goes by the busiest link: done after ${time(mine)} with the hints, after ${time(yarns)} where YARN puts the containers by itself.`
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
