// Racks, and the nodes of the one that is open.
import { Bar, Load, Panel, Table, busier, byName, html, memory, number, percent, span } from './parts.mjs';
import { doc, place, rack, since, to } from './state.mjs';

const free = (row) => Math.max(0, row.total_mb - row.used_mb - row.leased_mb);
const taken = (row) => (row.total_mb ? (row.used_mb + row.leased_mb) / row.total_mb : 0);

export function Nodes() {
  const { chosen } = place.value;
  const rows = [...doc.value.racks].sort((a, b) => byName(a.rack, b.rack));
  return html`
    ${chosen && html`<${Rack} name=${chosen} />`}
    <${Table} caption=${`${rows.length} racks`} empty="no node is known." name="racks" by=${(row) => row.rack} rows=${rows} columns=${[
    ['Rack', (row) => html`<a href=${to('nodes', row.rack)} aria-current=${row.rack === chosen ? 'true' : undefined}>${row.rack}</a>`, '', (row) => row.rack],
    ['Usable', (row) => html`<span class=${row.usable < row.nodes ? 'state warn' : ''}>${row.usable} of ${row.nodes}</span>`, '', (row) => row.usable - row.nodes],
    ['Used and leased', (row) => html`<${Bar} share=${taken(row)} age=${row.oldest_ms == null ? 0 : row.oldest_ms + since()} />`, '', taken],
    ['Free', (row) => memory(free(row)), 'n', free],
    ['Leased', (row) => memory(row.leased_mb), 'n', (row) => row.leased_mb],
    ['Containers', (row) => row.containers, 'n', (row) => row.containers],
    ['Longest silent', (row) => span(row.oldest_ms), 'n', (row) => row.oldest_ms],
  ]} />`;
}

function Rack({ name }) {
  const found = rack.value?.rack === name ? rack.value : null;
  const share = (node, what) => (node.total.memory_mb ? node[what].memory_mb / node.total.memory_mb : 0);
  // A node's figures are as old as its last heartbeat; all of them as old as the answer.
  const age = (node) => (node.age_ms ?? 0) + since(found.at);
  const linked = (node) => ({ ...node.link, at: found.at });
  return html`<${Panel} id="rack" close="#/nodes" title=${`Rack ${name}`}>
    ${!found ? html`<p>Asking for its nodes.</p>` : found.error ? html`<p class="alert">${found.error}</p>` : html`
    <${Table} caption=${`${found.nodes.length} nodes`} empty="there is no node in it." name="nodes" by=${(node) => node.host} rows=${found.nodes} columns=${[
    ['Host', (node) => node.host, '', (node) => node.host],
    ['State', (node) => html`<span class=${'state ' + (node.state === 'RUNNING' ? 'good' : 'bad')}>${node.state}</span>`, '', (node) => node.state],
    ['Used', (node) => html`<${Bar} share=${share(node, 'used')} age=${age(node)} />`, '', (node) => share(node, 'used')],
    ['Leased', (node) => percent(share(node, 'leased')), 'n', (node) => share(node, 'leased')],
    ['Memory', (node) => memory(node.total.memory_mb), 'n'],
    ['Cores used', (node) => `${number(node.used.vcores)} of ${number(node.total.vcores)}`, 'n'],
    ['Containers', (node) => node.containers, 'n', (node) => node.containers],
    ['Link', (node) => (node.link ? html`<a href=${to('network', node.link.id)} aria-label=${'Link ' + node.link.id}>link</a> <${Load} link=${linked(node)} />` : '–'), '', (node) => (node.link?.up ? busier(node.link) : null)],
    ['Labels', (node) => node.labels.join(' ') || '–'],
    ['Heard', (node) => (node.age_ms == null ? 'never' : span(age(node))), 'n', (node) => node.age_ms],
  ]} />`}<//>`;
}
