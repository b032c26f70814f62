// The network: switches as boxes, links with a line each way, as wide and colored as they are loaded.
import { signal } from './vendor/signals-core.mjs';
import { Bar, Chart, Copy, Facts, Filter, Glossary, Load, OLD_MS, Panel, Table, Unknown, above, before, bits, busier, byName, bytes, count, cut, down, hottest, html, level, linkState, modelled, nobody, percent, shares, span, unknown, ways, when } from './parts.mjs';
import { below, layout } from './layout.mjs';
import { doc, history, hostLinks, isOf, linkFilter, loadAge, place, since, to, wantedSwitches } from './state.mjs';

/** Beyond so many lines a picture says no more than the table. */
const LINES_MAX = 1500;
/** Beyond so many lines arrows would hide them: which way a line goes is told by its side alone. */
const ARROWS_MAX = 300;
/** So far along its way a line has its arrow: those of both ways do not meet. */
const ARROW_AT = 0.68;
/** A map is made smaller to fit, to this share of its size; beyond it scrolls. */
const SMALLEST = 0.62;
/** A screen so narrow shows the map smaller, with larger letters in it: as in page.css. */
const PHONE = 640;
/** What a map has beside it on a narrow screen, pixels. */
const MARGINS = 24;
/** Hosts that are named behind a link. */
const HOSTS_MAX = 10;
/** Loads are averaged over so long before a link went down. */
const MEAN_MS = 300_000;
/** Where the line of a link that is down stands. */
const DOWN_AT = -3;
/** Chosen in place of a link: those that are down. */
const FAILED = 'failed';
/** Rows of the table of links. */
const ROWS_MAX = 200;
/** What of the map the tab key comes to: `switch NAME` or `link ID`; arrows go on from there. */
const stop = signal('');
const BACK = ['ArrowLeft', 'ArrowUp'];
const ON = ['ArrowRight', 'ArrowDown'];

/** Shows the links of a switch in the table. */
function only(name) {
  linkFilter.value = name;
  document.getElementById('of')?.focus();
}

/** What each part of the map needs to be reached and opened by keys; `parts` are all, in order. */
function reached(key, parts, label, open) {
  const onKeyDown = (event) => {
    const at = parts.indexOf(key);
    const next = { Home: 0, End: parts.length - 1 }[event.key] ?? (ON.includes(event.key) ? at + 1 : BACK.includes(event.key) ? at - 1 : null);
    if (event.key === 'Enter' || event.key === ' ') open();
    else if (next == null) return;
    else if (parts[next] !== undefined) {
      stop.value = parts[next];
      [...event.currentTarget.ownerSVGElement.querySelectorAll('[data-part]')].find((part) => part.dataset.part === parts[next])?.focus();
    }
    event.preventDefault();
  };
  const isStop = key === (parts.includes(stop.value) ? stop.value : parts[0]);
  return { 'data-part': key, 'aria-label': label, tabindex: isStop ? 0 : -1, onKeyDown, onFocus: () => { if (stop.value !== key) stop.value = key; }, onClick: open };
}

/** A load in words, with its age where it is old. */
const aged = (link) => (loadAge(link) > OLD_MS ? `, ${span(loadAge(link))} old` : '');

/** Arrow heads by level, as wide lines need larger ones; they point to the right before they are turned. */
const ARROWS = [4.5, 5, 6, 7, 8].map((size) => `M${-size} ${-size}L${size} 0L${-size} ${size}Z`);

/** Both directions of a link, side by side: to the right of the way that it goes, as cars drive; each has an arrow. */
function Line({ link, from, to: end, chosen, parts, arrows }) {
  const [dx, dy] = [end.x - from.x, end.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const said = `${link.id}, ${link.a} to ${link.b}: ` + (link.up ? shares(link).map((share, way) => `${ways(link)[way]} ${percent(share)}`).join(', ') + aged(link) : down(link)) + (link.damped ? ', flaps' : '');
  const lines = shares(link).map((share, way) => {
    const aside = (way ? -1 : 1) * 3.2;
    const [ox, oy] = [(-dy / length) * aside, (dx / length) * aside];
    const kind = link.up ? 'load-' + level(share) + (aged(link) && ' old') : 'down';
    return html`<line class=${'link ' + kind} x1=${from.x + ox} y1=${from.y + oy} x2=${end.x + ox} y2=${end.y + oy} />`;
  });
  const angle = (Math.atan2(dy, dx) * 180) / Math.PI;
  const heads = arrows && link.up && shares(link).map((share, way) => {
    const [along, aside] = [way ? 1 - ARROW_AT : ARROW_AT, (way ? -1 : 1) * 3.2];
    const spot = [from.x + dx * along - (dy / length) * aside, from.y + dy * along + (dx / length) * aside];
    return html`<path class=${'arrow load-' + level(share) + (aged(link) && ' old')} d=${ARROWS[level(share)]} transform=${`translate(${spot.map((at) => at.toFixed(1)).join(' ')}) rotate(${(angle + (way ? 180 : 0)).toFixed(1)})`} />`;
  });
  const middle = [from.x + dx / 2, from.y + dy / 2];
  return html`<g role="link" class=${[chosen && 'chosen', link.damped && 'damped'].filter(Boolean).join(' ')} ...${reached('link ' + link.id, parts, said, () => { location.hash = to('network', link.id); })}><title>${said}</title>
    <line class="touch" x1=${from.x} y1=${from.y} x2=${end.x} y2=${end.y} />${link.damped && html`<line class="halo" x1=${from.x} y1=${from.y} x2=${end.x} y2=${end.y} />`}${lines}${heads}
    ${!link.up && html`<text class="cross" x=${middle[0]} y=${middle[1] + 6}>✕</text>`}</g>`;
}

function Switch({ spot, labels, parts }) {
  const { one } = spot;
  const state = !one.up ? 'bad' : one.hosts_cut ? 'warn' : '';
  const said = `${one.name}, ${one.tier}: ${one.up ? 'up' : 'DOWN'}` + (one.hosts ? `, ${one.hosts} hosts, ${one.hosts_cut} cut off` : '') + (one.hosts && one.up ? `, busiest host link ${percent(one.busiest_host_share)}` : '');
  return html`<g role="button" class=${'switch ' + state} ...${reached('switch ' + one.name, parts, said + '. Shows its links', () => only(one.name))}><title>${said}</title>
    <rect x=${spot.x - spot.width / 2} y=${spot.y - 13} width=${spot.width} height="26" rx="4" />
    ${labels && html`<text x=${spot.x} y=${spot.y + 4}>${cut(one.name, innerWidth < PHONE ? 10 : 13)}</text>`}
    ${one.hosts > 0 && html`<text class="small" x=${spot.x} y=${spot.y + 30}>${one.hosts - one.hosts_cut}${labels ? ' hosts' : ''}</text>`}
    ${one.hosts > 0 && one.up && html`<rect class=${'bar-part load-' + level(one.busiest_host_share)} x=${spot.x - spot.width / 2} y=${spot.y + 36} width=${spot.width * Math.max(0.04, Math.min(1, one.busiest_host_share))} height="5" />`}</g>`;
}

function Map_({ network, chosen }) {
  const { tiers, spots, width, height, labels, rows } = layout(network.switches, network.links);
  const drawn = network.links.filter((link) => spots.has(link.a) && spots.has(link.b));
  // The busiest, and what is down, is drawn last, above the others.
  const order = [...drawn].sort((a, b) => (a.up === b.up ? busier(a) - busier(b) : a.up ? -1 : 1)).slice(-LINES_MAX);
  const off = drawn.filter((link) => !link.up).length;
  // Switches tier by tier, then links by name: an order that stays as loads change.
  const arrows = order.length <= ARROWS_MAX;
  const least = Math.round(SMALLEST * width);
  const parts = [...[...spots.keys()].map((name) => 'switch ' + name), ...order.map((link) => 'link ' + link.id).sort(byName)];
  return html`<div class="scroll map" role="region" aria-label="Network map">
    <svg role="group" viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} ref=${(map) => map?.style.setProperty('min-width', least + 'px')}
      aria-label=${`${tiers.map((tier) => `${tier.length} ${tier[0].tier} switches`).join(', ')}; ${drawn.length} links, ${off} down. Arrow keys go from one to the next, Enter opens it. The table below has the same.`}>
      ${order.map((link) => html`<${Line} key=${link.id} link=${link} from=${spots.get(link.a)} to=${spots.get(link.b)} chosen=${link.id === chosen} parts=${parts} arrows=${arrows} />`)}
      ${[...spots.values()].map((spot) => html`<${Switch} key=${spot.one.name} spot=${spot} labels=${labels} parts=${parts} />`)}
    </svg></div>
    ${least > innerWidth - MARGINS && html`<p class="empty" id="wider">The map is wider than the screen: scroll it sideways.</p>`}
    <p class="legend" aria-hidden="true">${['below 10 %', 'from 10 %', 'from 40 %', 'from 70 %', 'from 90 %'].map((text, at) => html`<span><svg viewBox="0 0 40 12"><line class=${'link load-' + at} x1="2" y1="6" x2="38" y2="6" /></svg>${text}</span>`)}
      <span><svg viewBox="0 0 40 12"><line class="link down" x1="2" y1="6" x2="38" y2="6" /></svg>down</span>
      <span><svg class="both" viewBox="0 0 40 20"><line class="link load-1" x1="2" y1="6" x2="38" y2="6" /><line class="link load-1" x1="2" y1="14" x2="38" y2="14" />${arrows && html`<path class="arrow load-1" d=${ARROWS[1]} transform="translate(12 6) rotate(180)" /><path class="arrow load-1" d=${ARROWS[1]} transform="translate(28 14)" />`}</svg>${arrows ? 'one line each way, as its arrow points: ' : 'one line each way: '}each is to the right of the way it goes</span>
      <span><svg viewBox="0 0 40 12"><line class="halo" x1="2" y1="6" x2="38" y2="6" /></svg>flaps: new routes avoid it</span>
      ${!rows && html`<span>most links stay within one tier: switches stand by their links, not in rows</span>`}
      <span>below a switch: how many hosts it reaches, and the load of the busiest one's link</span><span>press a switch: its links in the table</span></p>`;
}

/** What became of an application whose routes went over a link that is down, as hintctl links says it. */
const pathsNow = (of) => (!of.routes_whole && !of.routes_cut ? 'sends no more'
  : of.routes_cut ? `${count(of.routes_cut, 'route')} without a path, ${of.routes_whole} with one` : `${count(of.routes_whole, 'route')} with a path`);

/** What a link carried when it went down. */
function Carried({ carried }) {
  const more = [
    carried.applications.reduce((sum, of) => sum + of.routes, 0) > carried.routes && `A route is a pair of hosts: one that several applications use stands in the row of each, so that rows add up to more than ${carried.routes}.`,
    carried.routes_chained > 0 && `${count(carried.routes_chained, 'route')} through middleboxes went over it.`,
    carried.routes_uncertain > 0 && `${count(carried.routes_uncertain, 'route')} may have gone over it: the network chose among several paths, which hintd does not see.`,
  ].filter(Boolean).join(' ');
  return html`<${Table} caption=${`Whose routes went over it when it went down: ${count(carried.routes, 'route')} of ${count(carried.applications_total, 'application')}`}
      empty="none that hintd knows of." by=${(of) => of.application_id} rows=${carried.applications} columns=${[
    ['Application', (of) => html`<a href=${to('applications', of.application_id)}>${of.application_id}</a>`],
    ['Routes over it', (of) => of.routes, 'n'],
    ['Now', (of) => html`<span class=${of.routes_cut ? 'state bad' : ''}>${pathsNow(of)}</span>`],
  ]} />${more && html`<p class="empty">${more}</p>`}`;
}

/** The last outage of a link that is over. */
const outage = ({ ended_ms, lasted_ms, said_by, carried, down_at_ms, load_before }, link) => {
  const named = carried?.applications.map((of) => of.application_id) ?? [];
  const more = (carried?.applications_total ?? 0) - named.length;
  const whose = named.length ? `, of ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}` : '';
  return `${span(lasted_ms)} long, from ${when(down_at_ms)} on, ended ${span(ended_ms + since())} ago${said_by ? `, as ${said_by} said` : ''}${load_before ? `; load before: ${before(load_before, link)}` : ''}${carried ? `; it carried ${count(carried.routes, 'route')}${whose}` : ''}`;
};

/** In words the mean each way of the minutes before a link went down, as far as the hour has points of them. */
function meanBefore(link, hour) {
  if (!hour?.link) return '';
  const last = hour.at_ms.length - 1;
  let end = last;
  while (end >= 0 && (hour.down[end] || hour.link[0][end] == null)) end -= 1;
  const points = [0, 1].map((way) => hour.link[way].filter((load, at) => load != null && at <= end && hour.at_ms[end] - hour.at_ms[at] < MEAN_MS));
  if (!points[0].length) return '; the last hour has no load of it';
  const mean = points.map((of) => of.reduce((sum, load) => sum + load, 0) / of.length / 1000);
  return `; mean of ${span(points[0].length * hour.every_ms)} before: ${mean.map((share, way) => `${percent(share)} ${ways(link)[way]}`).join(', ')}`;
}

/** Which hosts are behind a link between switches, those first that do most the way in which it is busier. */
function Behind({ link }) {
  const { switches, links } = doc.value.network;
  const sides = below(switches, links, link);
  wantedSwitches.names = new Set(sides.flatMap((side) => side.names));
  const asked = [...hostLinks.value.values()];
  const racks = doc.value.racks.length;
  const hosts = sides.flatMap(({ way, names }) => asked.flatMap((rack) => rack.links).filter((one) => one.up && names.some((name) => name === one.a || name === one.b)).map((one) => {
    // What goes out of a host on the side that the link leads from; what comes in on the other way.
    const out = one.a === one.host ? 0 : 1;
    return { ...one, side: way, sends: shares(one)[out], receives: shares(one)[1 - out], out };
  }));
  if (!sides.length) return null;
  // A link's direction from the side of a host: its hosts send; the other one: they receive.
  const busy = shares(link)[1] > shares(link)[0] ? 1 : 0;
  const does = (one) => (one.side === busy ? one.sends : one.receives);
  const rows = hosts.sort((a, b) => does(b) - does(a) || byName(a.host, b.host));
  const said = sides.map(({ way, top }) => `${way === busy ? 'what they send' : 'what they receive'} (below ${top})`).join(', and ');
  const missing = asked.length < racks ? `; ${asked.length} of ${racks} racks were asked for so far` : '';
  return html`<${Table} name="behind" caption=${`Busiest hosts behind it: ${ways(link)[busy]} is the busier way, so first by ${said}. All of a host's traffic, over whatever link it goes on${missing}`} empty=${`none is known yet${missing}.`} by=${(one) => one.id} rows=${rows.slice(0, HOSTS_MAX)} columns=${[
    ['Host', (one) => one.host, '', (one) => one.host],
    ['Sends', (one) => html`<${Load} link=${one} way=${one.out} />`, '', (one) => one.sends],
    ['Receives', (one) => html`<${Load} link=${one} way=${1 - one.out} />`, '', (one) => one.receives],
    ['Node, in its rack', (one) => html`<a href=${to('nodes', one.rack)} aria-label=${`Rack ${one.rack}, of ${one.host}`}>${one.rack}</a>`, '', (one) => one.rack],
    ['Its link', (one) => html`<a href=${to('network', one.id)}>${one.id}</a>`],
  ]} />${rows.length > HOSTS_MAX && html`<p class="empty">${count(rows.length - HOSTS_MAX, 'host')} more behind it, less busy: the table of links below has them, by the name of a switch.</p>`}`;
}

function Chosen({ link }) {
  const hour = history.value?.of === link.id ? history.value : null;
  const shown = hour?.link && hour.at_ms.length > 1;
  // While it is down there is no load: a gap, and a line below it that says why.
  const load = (way) => hour.link[way].map((value) => (value == null ? null : value / 10));
  const wasDown = shown && hour.down.includes(true);
  const sends = (way) => {
    const rate = [link.a_to_b_bits_per_s, link.b_to_a_bits_per_s][way];
    const model = [link.a_to_b_modelled_bits_per_s, link.b_to_a_modelled_bits_per_s][way];
    const wrong = link.load_source === 'measured' && model > rate ? `; the model has ${modelled(model)}, with flows that do not send now` : '';
    return link.up ? `${link.load_source === 'measured' ? bits(rate) : modelled(rate)} (${percent(shares(link)[way])}${aged(link)})${wrong}` : 'nothing: it is down';
  };
  return html`<${Panel} id="chosen" close="#/network" title=${html`Link <code>${link.id}</code> <${Copy} text=${link.id} />`}>
    <${Facts} rows=${[
    ['Between', `${link.a} and ${link.b}`],
    ['State', linkState(link), link.up ? '' : 'bad'],
    link.damped && ['Flaps', 'it went down and up too often (routes.flaps); new routes avoid it until it was quiet for routes.flaps_hold'],
    !link.up && ['Load before it went down', html`${before(link.load_before, link)}${meanBefore(link, hour)}`],
    link.last_outage && ['Last outage', outage(link.last_outage, link)],
    link.host && ['Host', html`${link.host}, in rack <a href=${to('nodes', link.rack)}>${link.rack}</a>`],
    ['Capacity each way', bits(link.bits_per_s)],
    [ways(link)[0], sends(0)],
    [ways(link)[1], sends(1)],
    link.up && ['Load is', `${link.load_source ?? '–'}, ${loadAge(link) < 1000 ? 'of now' : span(loadAge(link)) + ' old'}`],
  ]} />
    ${(link.up || link.users.length > 0 || !link.carried) && html`<${Table} caption=${link.up ? 'Who sends most over it: bytes of their flows from beginning to end, and modelled rates' + (unknown(link) ? '; ' + unknown(link) : '') : 'Whose flows the model has on it still, though it is down'} empty=${link.up ? nobody(link) + '.' : 'nobody with hints.'} by=${(user) => user.application_id} rows=${link.users} columns=${[
    ['Application', (user) => html`<a href=${to('applications', user.application_id)}>${user.application_id}</a>`],
    link.up && [ways(link)[0], (user) => `${bytes(user.a_to_b_bytes)}, ${modelled(user.a_to_b_bits_per_s)}${above(link, user, 0) ? ', above what is measured' : ''}`, 'n'],
    link.up && [ways(link)[1], (user) => `${bytes(user.b_to_a_bytes)}, ${modelled(user.b_to_a_bits_per_s)}${above(link, user, 1) ? ', above what is measured' : ''}`, 'n'],
  ].filter(Boolean)} /><${Unknown} links=${[link]} />`}
    ${link.up && !link.host && html`<${Behind} link=${link} />`}
    ${link.carried && html`<${Carried} carried=${link.carried} />`}
    ${shown ? html`<figure><figcaption>Load in the last hour, % of the capacity${wasDown ? '; where it was down there is a gap, and a line below 0' : ''}</figcaption>
      <${Chart} key=${link.id + wasDown} title=${'Load of ' + link.id} unit=" %" top=${100} at=${hour.at_ms} series=${[[ways(link)[0], load(0), '--one'], [ways(link)[1], load(1), '--two'], ...(wasDown ? [['down', hour.down.map((off) => (off ? DOWN_AT : null)), '--bad', 'down']] : [])]} /></figure>`
    : html`<p class="empty">${link.host ? 'The hour is kept of links between switches only.' : 'No history of this link yet.'}</p>`}<//>`;
}

/** Links that the filter leaves: of the switch or host of exactly that name, else those that have the text in a name. */
function left(links) {
  const wanted = linkFilter.value.trim();
  const exactly = links.filter((link) => link.a === wanted || link.b === wanted);
  return !wanted ? links : exactly.length ? exactly : links.filter((link) => isOf(link, wanted));
}

const first = (a, b) => (a.up === b.up ? hottest(a, b) : a.up ? 1 : -1);
const up = (way) => (link) => (link.up ? shares(link)[way] : null);

/** Links between switches, and those of hosts as far as they were asked for. */
function Links({ network, links, chosen }) {
  const rows = left(links).sort(first);
  const racks = doc.value.racks.length;
  const asked = hostLinks.value.size;
  const every = doc.value.status.links;
  return html`<section aria-labelledby="links"><h2 id="links">Links</h2>
    <${Filter} id="of" label="Only of host, switch or rack" by=${linkFilter} hint="a name, or a part of one" />
    ${asked < racks && html`<p class="empty">Hosts' links come rack by rack while this view is open: ${asked} of ${racks} racks so far.</p>`}
    <${Table} name="links" most=${ROWS_MAX} filter=${['of', linkFilter]} caption=${`${Math.min(rows.length, ROWS_MAX)} of all ${count(every, 'link')} shown (${network.links_total} join switches, ${Math.max(0, every - network.links_total)} lead to hosts). Links that are down first, then by load: measured, then modelled (~)`} empty="it has none." by=${(link) => link.id} rows=${rows} columns=${[
    ['Link', (link) => html`<a href=${to('network', link.id)} aria-current=${link.id === chosen ? 'true' : undefined}>${link.id}</a>`, '', (link) => link.id],
    ['State', (link) => html`<span class=${!link.up ? 'state bad' : link.damped ? 'state warn' : 'state good'}>${linkState(link)}</span>`, 'g', (link) => (link.up ? linkState(link) : 'DOWN')],
    ['One way', (link) => html`<${Load} link=${link} way=${0} named />`, '', up(0)],
    ['Other way', (link) => html`<${Load} link=${link} way=${1} named />`, '', up(1)],
    ['Load is', (link) => (link.up ? link.load_source ?? '–' : '–'), '', (link) => link.load_source],
    ['Kind', (link) => (link.host ? 'host' : 'switches'), '', (link) => (link.host ? 'host' : 'switches')],
    ['Capacity', (link) => bits(link.bits_per_s), 'n', (link) => link.bits_per_s],
    ['Applications', (link) => link.users_total, 'n', (link) => link.users_total],
  ]} /><${Glossary} of=${['one way, other way', 'modelled']} /></section>`;
}

export function Network() {
  const { network } = doc.value;
  const { chosen: asked } = place.value;
  wantedSwitches.names = new Set(); // an open link says which
  // `failed`: those that are down, in the table; no link is open.
  const failed = asked === FAILED && !network.links.some((link) => link.id === FAILED);
  const chosen = failed ? '' : asked;
  if (!network.switches.length) return html`<p class="empty">No network is known: name one by [network] file, or feed Feed.Topology.</p>`;
  const links = [...network.links, ...[...hostLinks.value.values()].flatMap((rack) => rack.links)];
  const found = links.find((link) => link.id === chosen);
  const off = network.switches.filter((one) => !one.up);
  const cut = links.filter((link) => !link.up);
  const sought = hostLinks.value.size < doc.value.racks.length;
  return html`
    ${off.length > 0 && html`<p class="alert">Switches down: ${off.map((one) => one.name).join(', ')}</p>`}
    <${Map_} network=${network} chosen=${chosen} />
    ${chosen && (found ? html`<${Chosen} link=${found} />` : sought ? html`<p>Looking for link ${chosen} among those of hosts.</p>` : html`<p class="alert">There is no link ${chosen}.</p>`)}
    ${failed && html`<p class="note">${cut.length ? `Of the links that this page has asked for ${count(cut.length, 'link')} ${cut.length === 1 ? 'is' : 'are'} down.` : 'No link is down now.'} <a href="#/network">All links</a></p>`}
    <${Links} network=${network} links=${failed ? cut : links} chosen=${chosen} />`;
}
