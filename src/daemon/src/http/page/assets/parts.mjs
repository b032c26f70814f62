// Parts of all views. Names are children of elements, so texts: nothing here makes markup of them.
import { h, Component } from './vendor/preact.mjs';
import htm from './vendor/htm.mjs';
import { signal } from './vendor/signals-core.mjs';
import uPlot from './vendor/uplot.mjs';
import { cameFrom, loadAge, since, to } from './state.mjs';

export const html = htm.bind(h);

const round = (value) => String(Number(value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)));
/** A figure without an exponent: what is next to nothing is `<0.01`, thousands of thousands have their groups. */
export const number = (value) => (value == null ? '–' : value < 0 ? '−' + number(-value) : value === 0 ? '0' : value < 0.01 ? '<0.01' : value >= 1e6 ? Math.round(value).toLocaleString('en-US') : round(value));
/** A time in seconds, in the unit that it has digits in. */
export const time = (s) => (s == null ? '–' : s >= 1 || !s ? number(s) + ' s' : s >= 1e-3 ? number(s * 1e3) + ' ms' : s >= 1e-6 ? number(s * 1e6) + ' µs' : '<1 µs');
/** A figure at an axis: ticks lie close to each other. */
const tickText = (value) => (value && Math.abs(value) < 0.01 ? String(Number(value.toPrecision(2))) : number(value));
/** A figure in hundredths: what is not all, or not nothing, does not look so. Sums of fractions may be a hair beside the whole. */
const hundredths = (value) => {
  if (value < 0) return '−' + hundredths(-value);
  const text = number(value);
  if (text !== '100' || Math.abs(value - 100) < 1e-9) return text;
  return value < 100 ? '>99.9' : value < 100.05 ? '>100' : value.toFixed(1);
};
export const percent = (share) => (share == null ? '–' : hundredths(100 * share) + ' %');
const scaled = (value, step, units) => {
  let at = 0;
  while (value >= step && at < units.length - 1) { value /= step; at += 1; }
  return number(value) + ' ' + units[at];
};
export const bits = (value) => (value == null ? '–' : scaled(value, 1000, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s']));
/** Data, as hintctl has it. */
export const bytes = (value) => (value == null ? '–' : scaled(value, 1000, ['B', 'kB', 'MB', 'GB', 'TB', 'PB']));
/** Memory as YARN counts it: 1,024 MB are a GB. */
export const memory = (mb) => (mb == null ? '–' : scaled(mb, 1024, ['MB', 'GB', 'TB', 'PB']));
export function span(ms) {
  if (ms == null) return 'never';
  const s = ms / 1000;
  if (s < 10) return number(s) + ' s';
  if (s < 120) return Math.round(s) + ' s';
  if (s < 7200) return Math.round(s / 60) + ' min';
  return s < 172800 ? Math.round(s / 3600) + ' h' : Math.round(s / 86400) + ' d';
}
export const clock = (ms) => new Date(ms).toLocaleTimeString(undefined, { hour12: false });
/** A time of day; with its date where that is not today's. */
export function when(ms) {
  const at = new Date(ms);
  return at.toDateString() === new Date().toDateString() ? clock(ms) : at.toLocaleDateString(undefined, { month: 'short', day: 'numeric' }) + ' ' + clock(ms);
}
/** The zone of all times that are shown. */
export function zone() {
  const minutes = -new Date().getTimezoneOffset();
  const two = (value) => String(Math.floor(value)).padStart(2, '0');
  if (!minutes) return 'UTC';
  return `${Intl.DateTimeFormat().resolvedOptions().timeZone}, UTC${minutes < 0 ? '−' : '+'}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
}
/** A name that is too long, without its middle: names differ at their ends. */
export const cut = (text, most) => (text.length > most ? text.slice(0, Math.floor((most - 1) / 2)) + '…' + text.slice(-Math.ceil((most - 1) / 2)) : text);
export const count = (many, what) => `${many} ${what}${many === 1 ? '' : 's'}`;
export const words = (token) => String(token).replaceAll('_', ' ');
/** A cost term's name, as hintctl says it: without its unit. */
export const term = (name) => words(name.replace(/^part\./, '').replace(/(_bits_per)?_s$/, '').replace('cross_rack', 'cross-rack'));
/** Names as people sort them: rack2 before rack10. */
export const byName = new Intl.Collator('en', { numeric: true }).compare;

/** A load's class, so that color and width say the same: free, low, middle, high, full. */
export const level = (share) => (share >= 0.9 ? 4 : share >= 0.7 ? 3 : share >= 0.4 ? 2 : share >= 0.1 ? 1 : 0);

/** A load older than this is faded, and its age stands beside it. */
export const OLD_MS = 15000;

/** A share as a bar with its figure; `age` is that of the load, in milliseconds. */
export const Bar = ({ share, label, kind = 'load-' + level(share), age = 0 }) => html`
  <span class=${age > OLD_MS ? 'bar old' : 'bar'}><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
    <rect class="bar-all" width="100" height="10" /><rect class=${'bar-part ' + kind} width=${Math.max(0, Math.min(100, 100 * share))} height="10" />
  </svg><span>${label ?? percent(share)}${age > OLD_MS ? `, ${span(age)} old` : ''}</span></span>`;

/** Of each direction of a link. */
export const shares = (link) => [link.a_to_b_bits_per_s, link.b_to_a_bits_per_s].map((load) => load / Math.max(1, link.bits_per_s));
export const busier = (link) => Math.max(...shares(link));
/** A model fills some link whenever anybody sends, so that what is measured stands first while it is of now, and then the busier. */
const isMeasured = (link) => link.load_source === 'measured';
const measuredNow = (link) => link.up && isMeasured(link) && loadAge(link) <= OLD_MS;
export const hottest = (a, b) => measuredNow(b) - measuredNow(a) || busier(b) - busier(a);
/** Whose bytes a link carries where no application is named, as hintctl links says it. */
const NOBODY = { others: 'others, unknown to hintd', no_load: 'nobody', down: 'nobody: it is down' };
export const nobody = (link) => NOBODY[link.users_reason] ?? '–';
/** A modelled figure has a ~ before it. */
export const modelled = (rate) => (rate ? '~' : '') + bits(rate);
/** The directions that are most loaded, as the daemon says. */
const fullWays = ({ fullness }) => [0, 1].filter((way) => (way ? fullness.b_to_a_full : fullness.a_to_b_full));
/** Its two directions by the names of its ends: from a to b, and back. */
export const ways = (link) => [`${link.a} → ${link.b}`, `${link.b} → ${link.a}`];
const bytesOf = (user) => [user.a_to_b_bytes, user.b_to_a_bytes];
const ratesOf = (of) => [of.a_to_b_bits_per_s, of.b_to_a_bits_per_s];
/** Who sends most in these. */
export const topUser = (link) => link.users.find((user) => user.fills);
/** Of what is measured in these the part that is no user's, where it is worth being named. */
export const unknown = (link) => {
  const { fullness, a_to_b_unaccounted_bits_per_s, b_to_a_unaccounted_bits_per_s } = link;
  const rest = [a_to_b_unaccounted_bits_per_s, b_to_a_unaccounted_bits_per_s];
  const told = [fullness.a_to_b_unknown, fullness.b_to_a_unknown].flatMap((is, way) => (is ? [`${bits(rest[way])} ${ways(link)[way]}`] : []));
  return told.length ? `unknown: ${told.join(', ')}` : '';
};
/** What `unknown` means, once below the rows that have it. */
export const Unknown = ({ links }) => links.some(unknown) && html`<p class="empty">Unknown: measured on the link, and of no flow that hintd knows: files that maps read from other hosts or that are written, or traffic of others.</p>`;
/** Whether the model has more of a user one way than is measured there of all; the daemon says only that there is such a way. */
export const above = (link, user, way) => user.above_measured && ratesOf(user)[way] > ratesOf(link)[way];
/** What a user of a link sends in these. */
export const fills = (link, user) => fullWays(link).filter((way) => bytesOf(user)[way] > 0).map((way) => `${bytes(bytesOf(user)[way])} ${ways(link)[way]} (${ratesOf(user)[way] ? modelled(ratesOf(user)[way]) : 'rate unknown'}${above(link, user, way) ? ', above measured' : ''})`).join(' + ');
/** What was measured on a link last before it went down, in the busier direction: one look at its counters. */
export const before = (load, link) => {
  if (!load) return 'nothing was measured';
  const both = [load.a_to_b_bits_per_s, load.b_to_a_bits_per_s];
  const way = both[1] > both[0] ? 1 : 0;
  return `${bits(both[way])} (${percent(both[way] / Math.max(1, link.bits_per_s))}) ${ways(link)[way]}, measured once, ${span(load.before_ms)} before it went down`;
};
/** That a link is down; since when and by whose word, where the daemon says so. */
export const down = (link) => 'DOWN' + (link.down_ms == null ? '' : ' for ' + span(link.down_ms + since())) + (link.down_at_ms ? `, since ${when(link.down_at_ms)}` : '') + (link.down_by ? `, as ${link.down_by} said` : '');
/** A link's state in a word or two; new routes avoid one that flaps until it was quiet. */
export const linkState = (link) => (link.up ? (link.damped ? 'up, flaps' : 'up') : down(link));
/** A link's load one way (0, 1), or the busier one; a link that is down has none. With `named`, where to it goes that way. */
export const Load = ({ link, way, named }) => {
  const end = named && html` <span class="way">to ${way ? link.a : link.b}</span>`;
  if (!link.up) return html`<span class="one-line">${named ? '–' : html`<span class="state bad">DOWN</span>`}${end}</span>`;
  const share = way == null ? busier(link) : shares(link)[way];
  return html`<span class="one-line"><${Bar} share=${share} label=${(share && !isMeasured(link) ? '~' : '') + percent(share)} age=${loadAge(link)} />${end}</span>`;
};
/** Feeds that tell what has changed, and are silent while nothing does. */
const CHANGES = ['blocks', 'topology', 'events'];
const QUIET_MS = 60000;
/** How a source stands, in words and how good that is. */
export const fresh = (age) => (age.stale ? (age.age_ms == null ? ['never heard', 'off'] : ['too old', 'warn'])
  : age.age_ms > QUIET_MS && CHANGES.includes(age.source) ? ['in force: it tells changes only', 'good'] : ['fresh', 'good']);
/** How urgent an alert is, as its rule says it. */
const URGENT = { page: 'urgent: users are hurt now', ticket: 'not urgent: look within a day' };
export const severity = (alert) => URGENT[alert.severity] ?? alert.severity;
/** What was done without: `no_latency` is that latency was not known. */
export const lacking = (tokens) => tokens.map((token) => words(token.replace(/^no_/, ''))).join(', ');

/** Words of these pages that are no plain English, each in a sentence. */
const WORDS = {
  'core hops': 'switches above the edge layer that lie between containers, summed over all pairs of them of which at least one is new',
  balance: 'how unevenly nodes are loaded, 0 to 1: twice the standard deviation of the load of the nodes used',
  objective: 'the one figure that the deciding policy makes as small as it can. Of policy joint it is mostly a time: how long the busiest link takes. Objectives of two policies can not be compared',
  'objective lower by': 'how much smaller the objective is with the hints than where YARN would put the containers by itself, as estimated when they were given. 100 % means that nothing of it is left. It is no share of bytes: the decision, opened, has the amounts',
  expected: 'bytes that hints save if all of them are followed, as estimated',
  actual: 'bytes that were saved, computed with the hosts to which the containers came; hintctl calls it realised gain',
  followed: 'YARN put the container on the host that the hint named: 3/4 are three of four containers',
  'not followed': 'YARN put the container on another host, or never started it; not counted in a queue in shadow, where YARN is told nothing',
  'busiest link': 'when the job\'s own bytes would be through on the link that takes longest, beside what is there already',
  'worst link': 'the same on the network\'s own paths, with nothing else on them',
  'remote bytes': 'input that no host has which reads it',
  'cross-rack bytes': 'input and shuffle that leave their rack',
  'one way, other way': 'each link carries traffic in two directions at a time; each figure names the end to which it goes',
  modelled: 'computed from the flows that hintd knows, where no counters of the link are at hand; it has a ~ before it',
  'YARN alone': 'where YARN would put the containers without hints, as estimated',
  awaited: 'a hinted container that nobody has seen yet, on its host or elsewhere',
  settled: 'all containers of a decision were seen, or will not come any more: it is counted',
  withheld: 'hints were made and kept back, for YARN does as well by itself',
  withdrawn: 'the room that was kept for a container was given to somebody else by YARN',
  'held out': 'an application that gets no hints on purpose, to compare with',
  lease: 'room that is kept for a hinted container until it comes',
  'potential saving': 'the share of the real cost, of what ran where YARN put it, that the hints would have saved',
};
/** What words mean, to be opened. */
export const Glossary = ({ of }) => html`<details class="glossary"><summary>What these words mean</summary><dl>${of.map((word) => html`<dt>${word}</dt><dd>${WORDS[word]}</dd>`)}</dl></details>`;


/** Which text was copied last. */
const copied = signal('');
async function copy(text) {
  await navigator.clipboard.writeText(text);
  copied.value = text;
}

export const Copy = ({ text }) => html`<button type="button" class="copy" aria-label=${(copied.value === text ? 'Copied ' : 'Copy ') + text} onClick=${() => copy(text)}>${copied.value === text ? 'copied' : 'copy'}</button>`;

/** An id of a row: its ends, all of it on focus, as a tip, and for who copies. */
export const Id = ({ id, href }) => html`<span class="id"><a href=${href} title=${id} aria-label=${id}><code>${id.length > 18
  ? html`${id.slice(0, 8)}<span class="mid">${id.slice(8, -8)}</span>${id.slice(-8)}` : id}</code></a> <${Copy} text=${id} /></span>`;

/** Narrows a table to what is typed, which is in the signal `by`. */
export const Filter = ({ id, label, by, hint }) => html`<p class="filter"><label for=${id}>${label}</label> <input id=${id} type="search" value=${by.value} onInput=${(event) => { by.value = event.currentTarget.value; }} placeholder=${hint} />
  ${by.value && html`<${Clear} id=${id} by=${by} />`}</p>`;

const Clear = ({ id, by }) => html`<button type="button" onClick=${() => {
  by.value = '';
  document.getElementById(id)?.focus();
}}>Clear the filter</button>`;

/** By table: the column that it is sorted by, and which way; others are in the order that they came in. */
const sorted = signal({});
const WAYS = { ascending: '▲', descending: '▼' };

/** Figures: greatest first, then least first, then as they came; names the other way round. */
function turn(table, head, [first]) {
  const was = sorted.value[table];
  const second = first === 'ascending' ? 'descending' : 'ascending';
  const way = was?.head !== head ? first : was.way === first ? second : null;
  sorted.value = { ...sorted.value, [table]: way && { head, way } };
  // Who sorts a table wants it sorted, whatever is under the pointer; it stands still anew when the pointer comes again.
  if (held.value?.table === table) letGo();
}

/** Whether somebody sorted a table. */
export const isSorted = (table) => !!sorted.value[table];

/** The table that the mouse is over, and the order of its rows since: nobody aims at a row that moves. */
const held = signal(null);
/** Who did not move the mouse for so long does not aim. */
const HELD_MS = 30000;
let still = null;
let lastAt = '';
export function letGo() {
  clearTimeout(still);
  held.value = null;
}
addEventListener('hashchange', letGo);

function leave(table) {
  lastAt = ''; // who comes back aims again
  if (held.peek()?.table === table) letGo();
}

/** The mouse came to a table, or moves on it. */
function hold(table, event) {
  // What moves under a mouse that lies still is no move of the mouse.
  const at = `${event.clientX} ${event.clientY}`;
  if (event.pointerType !== 'mouse' || at === lastAt) return;
  lastAt = at;
  if (held.peek()?.table !== table) held.value = { table };
  clearTimeout(still);
  still = setTimeout(letGo, HELD_MS);
}

/** Tables of which all rows are shown, at somebody's wish. */
const whole = signal(new Set());

/** Rows as they stood when the mouse came; what is new comes last. */
function standing(table, rows, by) {
  if (!table || held.value?.table !== table) return rows;
  held.value.order ??= new Map(rows.map((row, at) => [by(row), at]));
  const { order } = held.value;
  return [...rows].sort((a, b) => (order.get(by(a)) ?? Infinity) - (order.get(by(b)) ?? Infinity) || 0);
}

/** What is not known is last, either way. */
function inOrder(rows, value, way) {
  const sign = way === 'ascending' ? 1 : -1;
  const both = (a, b) => (typeof a === 'number' && typeof b === 'number' ? a - b : byName(String(a), String(b)));
  return rows.map((row) => [value(row), row]).sort(([a], [b]) => (a == null ? 1 : 0) - (b == null ? 1 : 0) || (a == null ? 0 : sign * both(a, b))).map(([, row]) => row);
}

function Head({ table, column: [head, , kind, value], rows }) {
  if (!value) return html`<th scope="col" class=${kind}>${head}</th>`;
  const now = sorted.value[table];
  const way = now?.head === head ? now.way : 'none';
  const first = rows.some((row) => typeof value(row) === 'number') ? 'descending' : 'ascending';
  return html`<th scope="col" class=${kind} aria-sort=${way}><button type="button" class="sort" onClick=${() => turn(table, head, [first])}>${head}<span aria-hidden="true">${WAYS[way] ?? '↕'}</span></button></th>`;
}

/**
 * Columns are [head, cell, kind, value]; kind "n" is a number; by `value` rows of a table that has a `name` can be sorted. The
 * first cell is the row's head. `filter` is [the filter's id, its signal] where one narrows the rows; `most` rows are shown, and
 * `few` of them until a button below is pressed.
 */
export function Table({ caption, columns, rows, by, empty = 'None.', name, filter, most = Infinity, few = Infinity }) {
  if (!rows.length && filter?.[1].value.trim()) {
    return html`<p class="empty">${caption}: nothing matches “${filter[1].value.trim()}”. <${Clear} id=${filter[0]} by=${filter[1]} /></p>`;
  }
  if (!rows.length) return html`<p class="empty">${caption}: ${empty}</p>`;
  const order = name && sorted.value[name];
  const value = order && columns.find(([head]) => head === order.head)?.[3];
  const all = standing(name, value ? inOrder(rows, value, order.way) : rows, by).slice(0, most);
  const isCut = all.length > few && !whole.value.has(name);
  const shown = isCut ? all.slice(0, few) : all;
  const held_ = name && { onPointerEnter: (event) => hold(name, event), onPointerMove: (event) => hold(name, event), onPointerLeave: () => leave(name) };
  return html`<div class="scroll" role="region" aria-label=${caption} tabindex="0" ...${held_}><table><caption><span>${caption}${name && held.value?.table === name && rows.length > 1 ? '. Rows keep their order while the mouse moves here' : ''}</span></caption>
    <thead><tr>${columns.map((column) => (name ? html`<${Head} table=${name} column=${column} rows=${rows} />` : html`<th scope="col" class=${column[2]}>${column[0]}</th>`))}</tr></thead>
    <tbody>${shown.map((row) => html`<tr key=${by(row)}>${columns.map(([, cell, kind], at) => (at === 0
    ? html`<th scope="row" class=${kind}>${cell(row)}</th>` : html`<td class=${kind}>${cell(row)}</td>`))}</tr>`)}</tbody></table></div>
    ${isCut && html`<p class="more"><button type="button" onClick=${(event) => {
    // The button goes; who pressed it goes on in the table.
    event.currentTarget.parentElement.previousElementSibling?.focus({ preventScroll: true });
    whole.value = new Set([...whole.value, name]);
  }}>Show all ${all.length} rows</button></p>`}`;
}

/** What is open of a view, above its table: named, closed at its head, at its end, and by Esc; page.mjs moves the focus to its heading. */
export function Panel({ id, close, title, children }) {
  const from = cameFrom();
  const back = from && to(from.view, from.chosen);
  const links = back && back !== close ? html`<a href=${back} title="Esc leads there, too">Back to ${from.title}</a> <a href=${close}>Close</a>` : html`<a href=${close} title="Esc closes it, too">Close</a>`;
  return html`<section aria-labelledby=${id} class="panel"><p class="close">${links}</p>
  <h2 id=${id} tabindex="-1">${title}</h2>${children}<p>${links}</p></section>`;
}

export const Facts = ({ rows }) => html`<dl class="facts">${rows.filter(Boolean).map(([name, value, kind]) => html`<div class=${kind ?? ''}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

/** Between two ticks of time, pixels: a time with seconds fits, and a gap beside it. */
const TIME_WIDTH = 80;

/** A picture with an axis of time; `series` are [name, values, class, words for any value]. Those with words have points: a line needs two. The figures are in its label for who can't see it. */
export class Chart extends Component {
  draw() {
    this.plot?.destroy();
    const css = getComputedStyle(document.documentElement);
    const ink = css.getPropertyValue('--ink').trim();
    const line = css.getPropertyValue('--line').trim();
    const { series, unit, top } = this.props;
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: '12px system-ui' };
    const times = (plot, ticks, axisAt, space, step) => ticks.map((tick) => clock(tick * 1000).slice(0, step < 60 ? 8 : 5));
    this.plot = new uPlot({
      width: Math.max(200, this.box.clientWidth), height: 200, cursor: { drag: { x: false, y: false } },
      scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high ?? 0, top ?? 0) || 1] } },
      axes: [{ ...axis, size: 34, space: TIME_WIDTH, values: times, label: 'Time of day, ' + zone(), labelSize: 20, labelFont: '12px system-ui' }, { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => tickText(tick) + (unit ?? '')) }],
      series: [{ label: 'Time', value: (_, value) => (value == null ? '–' : clock(value * 1000)) }, ...series.map(([label, , color, said], at) => ({
        label, stroke: css.getPropertyValue(color).trim(), width: 2, dash: at % 2 ? [6, 4] : undefined, points: { show: !!said, size: 5 },
        value: (_, value) => this.said(value, said),
      }))],
    }, this.data(), this.box);
  }
  /** A figure; `words` stand for that of a series which only says that something is so. */
  said(value, words) { return value == null ? '–' : words ?? (this.props.unit === ' %' ? percent(value / 100) : number(value) + (this.props.unit ?? '')); }
  data() { return [this.props.at.map((ms) => ms / 1000), ...this.props.series.map(([, values]) => values)]; }
  componentDidMount() {
    this.draw();
    this.again = () => this.draw();
    addEventListener('resize', this.again);
    this.scheme = matchMedia('(prefers-color-scheme: dark)');
    this.scheme.addEventListener('change', this.again);
  }
  componentDidUpdate(was) {
    if (was.series.map(([name]) => name).join() === this.props.series.map(([name]) => name).join()) this.plot.setData(this.data());
    else this.draw();
  }
  componentWillUnmount() {
    removeEventListener('resize', this.again);
    this.scheme.removeEventListener('change', this.again);
    this.plot?.destroy();
  }
  render() {
    const last = this.props.series.map(([name, values, , words]) => `${name} ${this.said(values.at(-1), words)}`);
    return html`<div class="chart" ref=${(box) => { this.box = box; }} role="img" aria-label=${`${this.props.title}, last: ${last.join(', ')}`}></div>`;
  }
}
