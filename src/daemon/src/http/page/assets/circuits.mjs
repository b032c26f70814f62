// Circuits of an optical switch, and chains of middleboxes.
import { Bar, Facts, Table, bits, byName, bytes, cut, html, number, percent, span, words } from './parts.mjs';
import { circuits } from './state.mjs';

/** Beyond so many ports a picture says no more than the table. */
const DRAWN_MAX = 64;
const ROW = 26;
/** Room for a port's label on either side, as wide as capitals make it, and the board between. */
const SIDE = 300;
const BETWEEN = 300;
const WIDE = 2 * SIDE + BETWEEN;

export function Circuits() {
  const found = circuits.value;
  if (!found) return html`<p>Asking for circuits and chains.</p>`;
  if (found.error) return html`<p class="alert">${found.error}</p>`;
  return html`<section aria-labelledby="circuits"><h2 id="circuits">Optical circuits</h2>
    ${found.circuits.wanted ? html`<${Optical} found=${found} />` : html`<p class="empty">The network has no optical switch: no circuits are wanted.</p>`}</section>
    <section aria-labelledby="chains"><h2 id="chains">Service chains</h2><${Chains} found=${found} /></section>`;
}

const pair = (circuit) => circuit.input + '\n' + circuit.output;

/** Every circuit that is wanted or set, and which of both. */
function all(found) {
  const { wanted, reported } = found.circuits;
  const set = new Map((reported?.set ?? []).map((circuit) => [pair(circuit), circuit]));
  const rows = wanted.circuits.map((circuit) => ({ ...circuit, wanted: true, set: set.has(pair(circuit)) }));
  const known = new Set(rows.map(pair));
  return [...rows, ...[...set.values()].filter((circuit) => !known.has(pair(circuit))).map((circuit) => ({ ...circuit, wanted: false, set: true }))];
}

const stands = (row) => (row.wanted ? (row.set ? ['set', 'good'] : ['wanted, not set', 'warn']) : ['set, not wanted', 'off']);

function Optical({ found }) {
  const { wanted, reported, ports } = found.circuits;
  const rows = all(found);
  const rack = new Map(ports.map((port) => [port.port, port.rack]));
  const broken = ports.filter((port) => port.state !== 'works').length;
  return html`
    <${Facts} rows=${[
    ['Switch', wanted.switch],
    ['Ports', `${found.ports_total}, ${broken} not working`, broken ? 'bad' : ''],
    ['Wanted', wanted.version ? `version ${wanted.version} (${words(wanted.cause)}), ${wanted.circuits.length} circuits` : 'nothing yet: a controller is to say first what is set'],
    ['Set', found.circuits.set ? 'as wanted' : reported ? 'not (yet) as wanted' : 'nobody has said what is set', found.circuits.set ? '' : 'warn'],
    ['Said by', reported ? `${reported.watcher}, ${span(reported.age_ms)} ago${found.circuits.attended ? '' : ', away since'}` : '–', reported && !found.circuits.attended ? 'warn' : ''],
    ['Elephants', `from ${bytes(found.circuits.elephant_bytes)}`],
    ['Chosen', `every ${span(found.circuits.interval_ms)}; a change takes ${span(found.circuits.pause_ms)}`],
    ['Racks without a port', String(found.circuits.racks_without_port)],
  ]} />
    ${found.ports_total <= DRAWN_MAX && html`<${Board} ports=${ports} rows=${rows} />`}
    <${Table} caption="Circuits, wanted and set" empty="none is wanted or set." by=${pair} rows=${rows} columns=${[
    ['From port', (row) => row.input], ['Rack', (row) => rack.get(row.input) ?? '–'], ['To port', (row) => row.output], ['Rack', (row) => rack.get(row.output) ?? '–'],
    ['State', (row) => html`<span class=${'state ' + stands(row)[1]}>${stands(row)[0]}</span>`],
    ['Bytes to come', (row) => (row.demand ? bytes(row.demand.expected_bytes) : '–'), 'n'],
    ['Jobs', (row) => row.demand?.jobs ?? '–', 'n'],
    ['Because of', (row) => (row.demand ? words(row.demand.reason) : '–')],
  ]} />
    <${Table} caption=${`Demand without a circuit: ${wanted.unserved_pairs} pairs of racks, ${bytes(wanted.unserved_bytes)}`} empty="none." by=${(row) => row.from_rack + '\n' + row.to_rack} rows=${wanted.unserved} columns=${[
    ['From rack', (row) => row.from_rack], ['To rack', (row) => row.to_rack], ['Bytes to come', (row) => bytes(row.expected_bytes), 'n'], ['Jobs', (row) => row.jobs, 'n'], ['Why not', (row) => words(row.reason)],
  ]} />
    <${Table} caption=${`${ports.length} of ${found.ports_total} ports, those that do not work first`} empty="it has none." by=${(port) => port.port} rows=${ports} columns=${[
    ['Port', (port) => port.port], ['Rack', (port) => port.rack],
    ['State', (port) => html`<span class=${'state ' + (port.state === 'works' ? 'good' : 'bad')}>${port.state}</span>`], ['Why', (port) => port.reason || '–'],
  ]} />`;
}

/** Ports as inputs on the left and as outputs on the right, and circuits between them. */
function Board({ ports, rows }) {
  const sorted = [...ports].sort((a, b) => byName(a.rack, b.rack) || byName(a.port, b.port));
  const y = new Map(sorted.map((port, at) => [port.port, 22 + at * ROW]));
  const height = 14 + sorted.length * ROW;
  const drawn = rows.filter((row) => y.has(row.input) && y.has(row.output));
  const said = `${sorted.length} ports, ${drawn.filter((row) => row.set).length} circuits set, ${drawn.filter((row) => !row.set).length} wanted and not set. The table below has the same.`;
  return html`<div class="scroll map" role="region" aria-label="Circuits" tabindex="0"><svg role="img" viewBox=${`0 0 ${WIDE} ${height}`} width=${WIDE} height=${height} aria-label=${said}>
    ${drawn.map((row) => html`<g><title>${`${row.input} to ${row.output}: ${stands(row)[0]}`}</title>
      <line class=${'circuit ' + (row.set ? (row.wanted ? 'set' : 'extra') : 'wanted')} x1=${SIDE} y1=${y.get(row.input)} x2=${SIDE + BETWEEN} y2=${y.get(row.output)} /></g>`)}
    ${sorted.map((port) => [[SIDE - 4, SIDE - 20, 'end', 'in'], [SIDE + BETWEEN + 4, SIDE + BETWEEN + 20, 'start', 'out']].map(([x, text, anchor, way]) => html`<g class=${'port ' + (port.state === 'works' ? '' : 'bad')}>
      <title>${`${port.port}, ${way}, ${port.rack}: ${port.state}${port.reason ? ', ' + port.reason : ''}`}</title><circle cx=${x} cy=${y.get(port.port)} r="5" />
      <text class=${anchor} x=${text} y=${y.get(port.port) + 4}>${cut(port.port + ' ' + port.rack, 22)}${port.state === 'works' ? '' : ' ✕'}</text></g>`))}
  </svg></div><p class="legend" aria-hidden="true"><span><svg viewBox="0 0 40 12"><line class="circuit set" x1="2" y1="6" x2="38" y2="6" /></svg>set, as wanted</span>
    <span><svg viewBox="0 0 40 12"><line class="circuit wanted" x1="2" y1="6" x2="38" y2="6" /></svg>wanted, not set</span><span><svg viewBox="0 0 40 12"><line class="circuit extra" x1="2" y1="6" x2="38" y2="6" /></svg>set, not wanted</span></p>`;
}

function Chains({ found }) {
  const { chains } = found;
  if (!chains.declared_by) return html`<p class="empty">None is declared, neither by [chains] nor by a feed.</p>`;
  return html`
    ${!chains.network_known && html`<p class="alert">No network is known: nothing can be said of whether chains are met.</p>`}
    ${found.unmet_total > 0 && html`<div class="alert"><p>${found.unmet_total} ${found.unmet_total === 1 ? 'chain' : 'chains'} that some hosts can't pass:</p>
      <${Table} caption="Unmet chains" by=${(row) => row.chain + '\n' + row.type + '\n' + row.example} rows=${chains.unmet} columns=${[
    ['Chain', (row) => row.chain], ['Type out of reach', (row) => row.type], ['Hosts', (row) => row.hosts, 'n'], ['For example', (row) => row.example],
    ['Why', (row) => words(row.reason)], ['Between', (row) => row.between.join(', ') || '–'], ['In words', (row) => row.message],
  ]} /></div>`}
    <${Table} caption=${`${chains.chains.length} of ${found.chains_total} chains, declared by the ${chains.declared_by}, in the order in which they are matched`} empty="none." by=${(row) => row.name} rows=${chains.chains} columns=${[
    ['Chain', (row) => row.name], ['Passes', (row) => row.sequence.join(' → ')], ['When broken', (row) => (row.when_broken === 'closed' ? 'closed: traffic stands still' : 'open: boxes are left out')],
    ['Flows', (row) => number(row.flows), 'n'],
    ['Without a way', (row) => html`<span class=${row.broken ? 'state bad' : ''}>${row.broken}</span>`, 'n'], ['Leave boxes out', (row) => html`<span class=${row.bypassing ? 'state warn' : ''}>${row.bypassing}</span>`, 'n'],
  ]} />
    <${Table} caption=${`${chains.boxes.length} of ${found.boxes_total} middleboxes`} empty="none." by=${(row) => row.name} rows=${chains.boxes} columns=${[
    ['Box', (row) => row.name], ['Type', (row) => row.type], ['At switch', (row) => row.at],
    ['State', (row) => html`<span class=${'state ' + (row.state === 'up' ? 'good' : 'bad')}>${words(row.state)}</span>`],
    ['Reserved', (row) => html`<${Bar} share=${row.bits_per_s ? row.used_bits_per_s / row.bits_per_s : 0} label=${`${bits(row.used_bits_per_s)}, ${percent(row.bits_per_s ? row.used_bits_per_s / row.bits_per_s : 0)}`} />`],
    ['Carries', (row) => bits(row.bits_per_s), 'n'],
  ]} />`;
}
