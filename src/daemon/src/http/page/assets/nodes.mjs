// Racks, and the nodes of the one that is open.
import { Bar, Table, byName, html, megabytes, number, percent, span } from './parts.mjs';
import { doc, place, rack, to } from './state.mjs';

const taken = (row) => (row.total_mb ? (row.used_mb + row.leased_mb) / row.total_mb : 0);

export function Nodes() {
  const { chosen } = place.value;
  const rows = [...doc.value.racks].sort((a, b) => byName(a.rack, b.rack));
  return html`
    ${chosen && html`<${Rack} name=${chosen} />`}
    <${Table} caption=${`${rows.length} racks`} empty="no node is known." by=${(row) => row.rack} rows=${rows} columns=${[
    ['Rack', (row) => html`<a href=${to('nodes', row.rack)} aria-current=${row.rack === chosen ? 'true' : undefined}>${row.rack}</a>`],
    ['Usable', (row) => html`<span class=${row.usable < row.nodes ? 'state warn' : ''}>${row.usable} of ${row.nodes}</span>`],
    ['Used and leased', (row) => html`<${Bar} share=${taken(row)} />`],
    ['Free', (row) => megabytes(Math.max(0, row.total_mb - row.used_mb - row.leased_mb)), 'n'],
    ['Leased', (row) => megabytes(row.leased_mb), 'n'],
    ['Containers', (row) => row.containers, 'n'],
    ['Longest silent', (row) => span(row.oldest_ms), 'n'],
  ]} />`;
}

function Rack({ name }) {
  const found = rack.value?.rack === name ? rack.value : null;
  const share = (node, what) => (node.total.memory_mb ? node[what].memory_mb / node.total.memory_mb : 0);
  const load = (node) => (node.link ? Math.max(node.link.a_to_b_bits_per_s, node.link.b_to_a_bits_per_s) / Math.max(1, node.link.bits_per_s) : null);
  return html`<section aria-labelledby="rack" class="panel"><h2 id="rack">Rack ${name}</h2>
    ${!found ? html`<p>Asking for its nodes.</p>` : found.error ? html`<p class="alert">${found.error}</p>` : html`
    <${Table} caption=${`${found.nodes.length} nodes`} empty="there is no node in it." by=${(node) => node.host} rows=${found.nodes} columns=${[
    ['Host', (node) => node.host],
    ['State', (node) => html`<span class=${'state ' + (node.state === 'RUNNING' ? 'good' : 'bad')}>${node.state}</span>`],
    ['Used', (node) => html`<${Bar} share=${share(node, 'used')} />`],
    ['Leased', (node) => percent(share(node, 'leased')), 'n'],
    ['Memory', (node) => megabytes(node.total.memory_mb), 'n'],
    ['Cores used', (node) => `${number(node.used.vcores)} of ${number(node.total.vcores)}`, 'n'],
    ['Containers', (node) => node.containers, 'n'],
    ['Link', (node) => (!node.link ? '–' : node.link.up ? html`<${Bar} share=${load(node)} />` : html`<span class="state bad">DOWN</span>`)],
    ['Labels', (node) => node.labels.join(' ') || '–'],
    ['Heard', (node) => span(node.age_ms), 'n'],
  ]} />`}
    <p><a href="#/nodes">Close</a></p></section>`;
}
