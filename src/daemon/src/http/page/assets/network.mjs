// The network by tiers: switches as boxes, links with a line each way, as wide and colored as they are loaded.
import { Bar, Chart, Facts, Table, bits, byName, html, level, percent } from './parts.mjs';
import { doc, history, place, to } from './state.mjs';

const TIERS = ['optical', 'core', 'aggregation', 'edge'];
const ROW = 130;
const TOP = 36;
const NARROW = 26;
const WIDE = 92;
/** Beyond so many lines a picture says no more than the table. */
const LINES_MAX = 1500;

const shares = (link) => [link.a_to_b_bits_per_s, link.b_to_a_bits_per_s].map((load) => load / Math.max(1, link.bits_per_s));
const busier = (link) => Math.max(...shares(link));

/** Where each switch stands. */
function layout(switches) {
  const tiers = TIERS.map((tier) => switches.filter((one) => one.tier === tier).sort((a, b) => byName(a.name, b.name))).filter((tier) => tier.length);
  const most = Math.max(...tiers.map((tier) => tier.length), 1);
  const step = most > 14 ? NARROW : WIDE;
  const width = Math.max(most * step, 520);
  const spots = new Map();
  tiers.forEach((tier, row) => tier.forEach((one, at) => {
    spots.set(one.name, { x: (width * (at + 0.5)) / tier.length, y: TOP + row * ROW, one, width: Math.min(step - 6, 84) });
  }));
  return { tiers, spots, width, height: TOP + Math.max(0, tiers.length - 1) * ROW + 58, labels: step === WIDE };
}

/** Both directions of a link, side by side: to the right of the way that it goes. */
function Line({ link, from, to: end, chosen }) {
  const [dx, dy] = [end.x - from.x, end.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const said = `${link.id}, ${link.a} to ${link.b}: ` + (link.up ? shares(link).map((share, way) => `${way ? 'back' : 'there'} ${percent(share)}`).join(', ') : 'DOWN');
  const lines = shares(link).map((share, way) => {
    const aside = (way ? -1 : 1) * 3.2;
    const [ox, oy] = [(-dy / length) * aside, (dx / length) * aside];
    const kind = link.up ? 'load-' + level(share) : 'down';
    return html`<line class=${'link ' + kind} x1=${from.x + ox} y1=${from.y + oy} x2=${end.x + ox} y2=${end.y + oy} />`;
  });
  const middle = [from.x + dx / 2, from.y + dy / 2];
  return html`<g class=${chosen ? 'chosen' : ''} onClick=${() => { location.hash = to('network', link.id); }}><title>${said}</title>
    <line class="touch" x1=${from.x} y1=${from.y} x2=${end.x} y2=${end.y} />${lines}
    ${!link.up && html`<text class="cross" x=${middle[0]} y=${middle[1] + 6}>✕</text>`}</g>`;
}

function Switch({ spot, labels }) {
  const { one } = spot;
  const state = !one.up ? 'bad' : one.hosts_cut ? 'warn' : '';
  const said = `${one.name}, ${one.tier}: ${one.up ? 'up' : 'DOWN'}` + (one.hosts ? `, ${one.hosts} hosts, ${one.hosts_cut} cut off, busiest host link ${percent(one.busiest_host_share)}` : '');
  return html`<g class=${'switch ' + state}><title>${said}</title>
    <rect x=${spot.x - spot.width / 2} y=${spot.y - 13} width=${spot.width} height="26" rx="4" />
    ${labels && html`<text x=${spot.x} y=${spot.y + 4}>${one.name.length > 13 ? one.name.slice(0, 12) + '…' : one.name}</text>`}
    ${one.hosts > 0 && html`<text class="small" x=${spot.x} y=${spot.y + 30}>${one.hosts - one.hosts_cut}${labels ? ' hosts' : ''}</text>`}
    ${one.hosts > 0 && html`<rect class=${'bar-part load-' + level(one.busiest_host_share)} x=${spot.x - spot.width / 2} y=${spot.y + 36} width=${spot.width * Math.max(0.04, Math.min(1, one.busiest_host_share))} height="5" />`}</g>`;
}

function Map_({ network, chosen }) {
  const { tiers, spots, width, height, labels } = layout(network.switches);
  const drawn = network.links.filter((link) => spots.has(link.a) && spots.has(link.b));
  // The busiest, and what is down, is drawn last, above the others.
  const order = [...drawn].sort((a, b) => (a.up === b.up ? busier(a) - busier(b) : a.up ? -1 : 1)).slice(-LINES_MAX);
  const down = drawn.filter((link) => !link.up).length;
  return html`<div class="scroll map" role="region" aria-label="Network map" tabindex="0">
    <svg role="img" viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height}
      aria-label=${`${tiers.map((tier) => `${tier.length} ${tier[0].tier} switches`).join(', ')}; ${drawn.length} links, ${down} down. The table below has the same.`}>
      ${order.map((link) => html`<${Line} key=${link.id} link=${link} from=${spots.get(link.a)} to=${spots.get(link.b)} chosen=${link.id === chosen} />`)}
      ${[...spots.values()].map((spot) => html`<${Switch} key=${spot.one.name} spot=${spot} labels=${labels} />`)}
    </svg></div>
    <p class="legend" aria-hidden="true">${['below 10 %', '10 %', '40 %', '70 %', '90 %'].map((text, at) => html`<span><svg viewBox="0 0 40 12"><line class=${'link load-' + at} x1="2" y1="6" x2="38" y2="6" /></svg>${text}</span>`)}
      <span><svg viewBox="0 0 40 12"><line class="link down" x1="2" y1="6" x2="38" y2="6" /></svg>down</span>
      <span>under a rack: hosts that it reaches, and the busiest host's link</span></p>`;
}

function Chosen({ link }) {
  const hour = history.value?.of === link.id ? history.value : null;
  const shown = hour?.link && hour.at_ms.length > 1;
  const load = (way) => hour.link[way].map((value) => (value == null ? null : value / 10));
  return html`<section aria-labelledby="chosen" class="panel"><h2 id="chosen">Link ${link.id}</h2>
    <${Facts} rows=${[
    ['Between', `${link.a} and ${link.b}`],
    ['State', link.up ? 'up' : 'DOWN', link.up ? '' : 'bad'],
    ['Capacity each way', bits(link.bits_per_s)],
    ['a to b', `${bits(link.a_to_b_bits_per_s)} (${percent(shares(link)[0])})`],
    ['b to a', `${bits(link.b_to_a_bits_per_s)} (${percent(shares(link)[1])})`],
    ['Load is', link.load_source ?? '–'],
  ]} />
    <${Table} caption="Who sends most over it (modelled, both ways)" empty="nobody with hints." by=${(user) => user.application_id} rows=${link.users} columns=${[
    ['Application', (user) => html`<a href=${to('applications', user.application_id)}>${user.application_id}</a>`],
    ['Rate', (user) => bits(user.bits_per_s), 'n'],
  ]} />
    ${shown ? html`<figure><figcaption>Load in the last hour, % of the capacity</figcaption>
      <${Chart} key=${link.id} title=${'Load of ' + link.id} unit=" %" top=${100} at=${hour.at_ms} series=${[[`${link.a} to ${link.b}`, load(0), '--one'], [`${link.b} to ${link.a}`, load(1), '--two']]} /></figure>`
    : html`<p class="empty">No history of this link yet.</p>`}
    <p><a href="#/network">Close</a></p></section>`;
}

export function Network() {
  const { network } = doc.value;
  const { chosen } = place.value;
  if (!network.switches.length) return html`<p class="empty">No network is known: name one by [network] file, or feed Feed.Topology.</p>`;
  const found = network.links.find((link) => link.id === chosen);
  const rows = [...network.links].sort((a, b) => (a.up === b.up ? busier(b) - busier(a) : a.up ? 1 : -1)).slice(0, 200);
  const off = network.switches.filter((one) => !one.up);
  return html`
    ${off.length > 0 && html`<p class="alert">Switches down: ${off.map((one) => one.name).join(', ')}</p>`}
    <${Map_} network=${network} chosen=${chosen} />
    ${chosen && (found ? html`<${Chosen} link=${found} />` : html`<p class="alert">There is no link ${chosen} between switches.</p>`)}
    <section aria-labelledby="links"><h2 id="links">Links between switches</h2>
    <${Table} caption=${`${rows.length} of ${network.links_total} links, what is down and the busiest first`} by=${(link) => link.id} rows=${rows} columns=${[
    ['Link', (link) => html`<a href=${to('network', link.id)} aria-current=${link.id === chosen ? 'true' : undefined}>${link.id}</a>`],
    ['State', (link) => html`<span class=${link.up ? 'state good' : 'state bad'}>${link.up ? 'up' : 'DOWN'}</span>`],
    ['a', (link) => link.a],
    ['b', (link) => link.b],
    ['a to b', (link) => (link.up ? html`<${Bar} share=${shares(link)[0]} />` : '–')],
    ['b to a', (link) => (link.up ? html`<${Bar} share=${shares(link)[1]} />` : '–')],
    ['Capacity', (link) => bits(link.bits_per_s), 'n'],
    ['Applications', (link) => link.users_total, 'n'],
  ]} /></section>`;
}
