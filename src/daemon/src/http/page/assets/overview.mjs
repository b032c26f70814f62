// Health, rates, the busiest links, what hints were worth.
import { Bar, Chart, Facts, Glossary, Load, Table, Unknown, bits, bytes, fills, hottest, html, nobody, number, percent, severity, shares, span, term, topUser, unknown, ways, words } from './parts.mjs';
import { doc, filter, history, onlyMissed, rates, since, to, toMissed } from './state.mjs';

export function Overview() {
  const { status, network, racks, applications_total: applications } = doc.value;
  const now = rates();
  const silent = Math.max(0, ...racks.map((rack) => rack.oldest_ms ?? 0)) + since();
  const busiest = network.links.filter((link) => link.up).sort(hottest).slice(0, 5);
  const room = racks.reduce((sum, rack) => sum + rack.total_mb, 0);
  const taken = racks.reduce((sum, rack) => sum + rack.used_mb + rack.leased_mb, 0);
  const hour = history.value;
  return html`
    <${Trouble} />
    <${Facts} rows=${[
    ['Nodes usable', `${status.nodes_usable} of ${status.nodes} in ${status.racks} racks`, status.nodes_usable < status.nodes ? 'warn' : ''],
    ['Links down', `${status.links_down} of ${status.links}`, status.links_down ? 'warn' : ''],
    ['Memory used and leased', html`<${Bar} share=${room ? taken / room : 0} age=${silent} />`],
    ['Applications with hints', String(applications)],
    ['Leases', String(status.leases)],
    ['Hints followed since the start', followed(status.adherence)],
    ['Requests answered', number(now.answered) + ' /s'],
    ['Requests refused', refused(now.refused), now.refused > 0 ? 'warn' : ''],
    ['Containers hinted', number(now.hinted) + ' /s'],
    ['Containers withheld', number(now.withheld) + ' /s'],
    ['Daemon', `up ${span(status.uptime_ms)}, ${bytes(status.resident_bytes)}, ${percent(now.cpu)} of a core`],
  ]} />
    <section aria-labelledby="busy"><h2 id="busy">Busiest links between switches</h2>
      <${Busiest} />
      <${Table} name="busiest-now" caption="Busiest now: measured loads first, then modelled (~), each way by itself" empty="no network is known." by=${(link) => link.id} rows=${busiest} columns=${[
    ['Link', (link) => html`<a href=${to('network', link.id)}>${link.id}</a>`],
    ['One way', (link) => html`<${Load} link=${link} way=${0} named />`],
    ['Other way', (link) => html`<${Load} link=${link} way=${1} named />`],
    ['Capacity', (link) => bits(link.bits_per_s), 'n'],
    ['Most traffic by', (link) => { const top = topUser(link); const rest = unknown(link); return html`${top && html`<a href=${to('applications', top.application_id)}>${top.application_id}</a> ${fills(link, top)}`}${top && rest ? '; ' : ''}${rest || (!top && nobody(link))}${rest ? html`: <a class="one-line" href=${to('network', link.id)} aria-label=${`Busiest hosts behind ${link.id}`}>hosts behind it</a>` : ''}`; }],
  ]} /><${Unknown} links=${busiest} /><${Glossary} of=${['one way, other way', 'modelled']} />
    </section>
    <section aria-labelledby="hour"><h2 id="hour">The last hour</h2>
      ${!hour || hour.at_ms.length < 2 ? html`<p class="empty">The first points come within 30 seconds of the daemon's start.</p>` : html`
      <div class="charts"><figure><figcaption>Requests a second</figcaption>
        <${Chart} title="Requests a second" unit=" /s" at=${hour.at_ms} series=${[['answered', hour.rates.answered, '--one'], ['refused', hour.rates.refused, '--two']]} /></figure>
      <figure><figcaption>Containers a second</figcaption>
        <${Chart} title="Containers a second" unit=" /s" at=${hour.at_ms} series=${[['hinted', hour.rates.hinted, '--one'], ['withheld', hour.rates.withheld, '--two']]} /></figure></div>`}
    </section>
    <${Worth} status=${status} />`;
}

/** What the two means are over. */
const WINDOWS_MS = [300_000, 900_000];
/** `, of about 40 s`: for how long a link was measured within a window that ends now, where that is less; nothing where it is all. */
function lasted(link, window) {
  const { every_ms, at_ms } = history.value;
  const now = at_ms.at(-1);
  const of = doc.value.at_ms;
  // Counters that nobody told of any more are no load either.
  const counters = doc.value.status.ages.find((age) => age.source === 'link_stats');
  const outages = [counters?.stale && link.load_source === 'measured' && [of - counters.age_ms, Infinity], link.down_ms != null && [of - link.down_ms, Infinity], link.last_outage && [of - link.last_outage.ended_ms - link.last_outage.lasted_ms, of - link.last_outage.ended_ms]].filter(Boolean);
  const points = at_ms.filter((at) => now - at < window && !outages.some(([from, until]) => at >= from && at < until)).length;
  return points * every_ms < window - every_ms ? `, of about ${span(points * every_ms)}` : '';
}

/** Directions of links by their mean load of the last minutes: what is hot for a second is not what makes jobs slow. */
function Busiest() {
  const found = history.value?.busiest;
  const links = new Map(doc.value.network.links.map((link) => [link.id, link]));
  if (!found) return null;
  // A mean says over how long it is, where that is less than the head says.
  const load = (row, at) => (row.mean[at] == null ? '–' : html`<${Bar} share=${row.mean[at]} label=${percent(row.mean[at]) + lasted(links.get(row.link), WINDOWS_MS[at])} />`);
  const rows = found.filter((row) => links.has(row.link));
  return html`<${Table} name="busiest-mean" caption="Busiest over the last minutes, by direction: mean load, and how much of the time it was above 90 %. A load is taken each 10 s; of the time that a link was down there is none, and a mean of less time says of how much" empty="nothing was carried in the last five minutes." by=${(row) => row.link + row.way} rows=${rows} columns=${[
    ['Link', (row) => html`<a href=${to('network', row.link)}>${row.link}</a>`],
    ['Direction', (row) => ways(links.get(row.link))[row.way]],
    ['Mean of 5 min', (row) => load(row, 0), '', (row) => row.mean[0]],
    ['Above 90 %', (row) => percent(row.full[0]), 'n', (row) => row.full[0]],
    ['Mean of 15 min', (row) => load(row, 1), '', (row) => row.mean[1]],
    ['Above 90 %, 15 min', (row) => percent(row.full[1]), 'n', (row) => row.full[1]],
    ['Now', (row) => html`<${Load} link=${links.get(row.link)} way=${row.way} />`, '', (row) => shares(links.get(row.link))[row.way]],
  ]} />`;
}

/** Rate and count since the start, and where these are: in the list of decisions, or, without a record, by who was refused. */
function refused(rate) {
  const { refused: reasons } = doc.value;
  const sum = (of) => reasons.reduce((all, row) => all + of(row), 0);
  const [all, recorded] = [sum((row) => row.requests), sum((row) => row.recorded)];
  return html`${number(rate)} /s, ${all} since the start${all > 0 && html`: <a href="#/decisions" onClick=${() => { onlyMissed.value = false; filter.value = 'refused'; }}>${recorded} recorded</a>${all > recorded && html`, <a href="#/configuration">${all - recorded} without a record</a>`}`}`;
}

/** Containers that came where they were hinted, and the way to decisions of which some did not. */
function followed(adherence) {
  const rows = adherence.filter((row) => row.mode === 'on');
  const [on, all] = [rows.reduce((sum, row) => sum + row.on_host, 0), rows.reduce((sum, row) => sum + hintedOf(row), 0)];
  if (!all) return 'no decision is settled yet';
  return html`${on} of ${all} (${percent(on / all)})${on < all && html`: <a href=${toMissed()}>${all - on} not followed</a>`}`;
}
const hintedOf = (row) => row.on_host + row.in_rack + row.elsewhere + row.never;

/** What hintctl doctor would warn of, as far as the daemon knows it, and alerts that fire. */
function Trouble() {
  const { attention, firing } = doc.value;
  const more = (check) => (check.name === 'links' ? html` <a href="#/network/failed">Links that are down</a>` : '');
  return html`<section aria-labelledby="attention"><h2 id="attention">Needs attention</h2>
    ${attention.map((check) => html`<p class=${check.verdict === 'problem' ? 'alert' : 'alert warn'} key=${check.name + check.finding}><strong>${check.verdict === 'problem' ? 'PROBLEM' : 'WARNING'}</strong> ${check.finding} ${check.advice}${more(check)}</p>`)}
    ${firing.map((alert) => html`<p class="alert">Alert ${alert.name} fires (${severity(alert)}): <a href=${to('alerts', alert.name)}>what it means and what to do</a></p>`)}
    ${!attention.length && !firing.length && html`<p class="empty">Nothing that the daemon knows of. hintctl doctor checks its machine as well.</p>`}
  </section>`;
}

/** Where containers came that did not follow, and the way to their decisions. */
function others(row) {
  const [missed, where] = [hintedOf(row) - row.on_host, [[row.in_rack, 'in the same rack'], [row.elsewhere, 'elsewhere'], [row.never, 'never started']].filter(([many]) => many > 0).map(([many, at]) => `${many} ${at}`).join(', ')];
  if (!missed || row.mode !== 'on') return where || 'none';
  return html`${where} <a class="one-line" href=${toMissed(row.queue)} aria-label=${`Which decisions of queue ${row.queue} were not followed`}>which</a>`;
}

/** Of one policy, queue and mode: followed, and what came of it. */
export function Worth({ status }) {
  // All figures of a row are of one measure, which the row names.
  const saved = (row) => ['cross_rack_bytes', 'remote_bytes'].find((name) => (row.terms?.[name]?.expected_gain ?? row.terms?.[name]?.had_followed) != null);
  const gain = (row, name) => row.terms?.[saved(row)]?.[name];
  // A share of what YARN alone would have sent, or, potential, of what was sent.
  const amount = (share, of) => (share == null ? '–' : of ? html`${percent(share)},<br />${share < 0 ? '−' : ''}${bytes(Math.abs(share) * of)} of ${bytes(of)}` : percent(share));
  return html`<section aria-labelledby="worth"><h2 id="worth">What hints were worth, by queue</h2>
    <${Table} caption="Since the start: how many hinted containers came to the host that was hinted, and how much of the traffic that YARN alone would cause the hints save" empty="no decision is settled yet."
      by=${(row) => [row.policy, row.queue, row.mode].join(' ')} rows=${status.adherence} columns=${[
    ['Queue', (row) => row.queue],
    ['Policy', (row) => row.policy],
    ['Mode', (row) => (row.mode === 'shadow' ? 'shadow: would have been hinted' : row.mode)],
    ['Decisions', (row) => row.decisions, 'n'],
    ['Followed', (row) => `${row.on_host} of ${hintedOf(row)} (${percent(row.on_host / Math.max(1, hintedOf(row)))})`, 'n'],
    ['Not followed', others],
    ['Traffic', (row) => html`<span class="one-line">${saved(row) ? term(saved(row)) : '–'}</span>`],
    ['Saved, expected', (row) => amount(gain(row, 'expected_gain'), gain(row, 'default')), 'n'],
    ['Saved, actual', (row) => amount(gain(row, 'realised_gain'), gain(row, 'default')), 'n'],
    ['Potential saving', (row) => amount(gain(row, 'had_followed'), gain(row, 'realised')), 'n'],
  ]} />
    <${Glossary} of=${['followed', 'cross-rack bytes', 'remote bytes', 'expected', 'actual', 'potential saving', 'settled', 'withheld', 'held out', 'lease']} />
    <${Table} caption="Completion times of hinted applications ÷ held-out ones" empty="no queue holds applications out (worth.holdout)."
      by=${(row) => row.name} rows=${status.holdout} columns=${[
    ['Queue', (row) => row.name],
    ['Held out', (row) => percent(row.holdout), 'n'],
    ['Hinted', (row) => row.hinted, 'n'],
    ['Not hinted', (row) => row.held_out, 'n'],
    ['Ratio', (row) => (row.ratio == null ? '–' : `${number(row.ratio)} (${number(row.low)} to ${number(row.high)})`), 'n'],
    ['Verdict', (row) => words(row.verdict)],
  ]} /></section>`;
}
