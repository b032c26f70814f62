// A decision made again: as it was answered, and under another policy side by side.
import { signal } from './vendor/signals-core.mjs';
import { Bar, Glossary, Table, bits, bytes, html, number, percent, term, time, words } from './parts.mjs';
import { replay, replayed, settings } from './state.mjs';

/** In the order in which hintctl has them; parts of the objective come after it. */
const ORDER = ['remote_bytes', 'cross_rack_bytes', 'core_hops', 'worst_link_s', 'balance', 'objective'];
const isPart = (name) => name.startsWith('part.');
const rank = (name) => (isPart(name) ? ORDER.length + 1 : ORDER.indexOf(name) + 1 || ORDER.length);
const UNITS = { remote_bytes: bytes, cross_rack_bytes: bytes, worst_link_s: time };
/** The policy that is chosen. */
const other = signal('');
/** What is chosen at first, where it is not the policy that decided. */
const HINTING = ['joint', 'container', 'spread'];

/** One term of both placements, side by side; what is less is better. */
export function Terms({ caption, heads, costs: [one, two] }) {
  const names = Object.keys({ ...one, ...two }).sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  if (!names.length) return html`<p class="empty">No term could be computed.</p>`;
  // Parts of an objective have the unit that their name ends with.
  const unit = (name) => UNITS[name] ?? (name.endsWith('_bits_per_s') ? bits : name.endsWith('_s') ? time : name.endsWith('across_racks') ? bytes : number);
  const show = (name, value) => unit(name)(value);
  return html`<div class="scroll" role="region" aria-label="Cost terms" tabindex="0"><table class="terms"><caption><span>${caption}</span></caption>
    <thead><tr><th scope="col">Term</th><th scope="col">${heads[0]}</th><th scope="col">${heads[1]}</th></tr></thead>
    <tbody>${names.map((name) => {
    const most = Math.max(one?.[name] ?? 0, two?.[name] ?? 0, 1e-12);
    const cell = (value, which) => (value == null ? '–' : html`<${Bar} share=${value / most} label=${show(name, value)} kind=${which} />`);
    return html`<tr key=${name}><th scope="row">${isPart(name) ? `of which ${term(name)}` : term(name)}</th><td>${cell(one?.[name], 'one')}</td><td>${cell(two?.[name], 'two')}</td></tr>`;
  })}</tbody></table></div><${Glossary} of=${['busiest link', 'worst link', 'remote bytes', 'cross-rack bytes', 'core hops', 'balance', 'objective', 'YARN alone']} />`;
}

/** What can be asked of a decision, by `policy`, and what came of it. */
export function Replay({ id, policy }) {
  const can = (settings.value?.policies ?? []).filter((one) => one.capabilities.includes('place') && one.name !== policy);
  // One that hints, where there is one: against capacity, which is YARN's own order, the decision is compared already.
  const first = [settings.value?.default_policy, ...HINTING].find((name) => can.some((one) => one.name === name)) ?? can[0]?.name ?? '';
  const chosen = can.some((one) => one.name === other.value) ? other.value : first;
  const known = replayed.value?.id === id ? replayed.value : null;
  const ask = (event) => { event.preventDefault(); if (chosen) replay(id, chosen); };
  return html`<h3 id="replay">Under another policy</h3>
    <form onSubmit=${ask} aria-labelledby="replay"><label>Policy <select value=${chosen} onChange=${(event) => { other.value = event.currentTarget.value; }}>
      ${can.map((one) => html`<option value=${one.name}>${one.name}</option>`)}</select></label> <button type="submit" disabled=${!chosen}>Replay</button></form>
    <div role="status" aria-live="polite">${known && !known.found && !known.error && html`<p>Replaying under ${known.policy}: at most 20 s.</p>`}</div>
    ${known?.error && html`<p class="alert">${known.error}</p>`}${known?.found && html`<${Beside} found=${known.found} policy=${known.policy} />`}`;
}

/** Containers by host of an answer. */
function hosts(answer) {
  const found = new Map();
  for (const hint of answer?.hints ?? []) found.set(hint.host, (found.get(hint.host) ?? 0) + 1);
  return found;
}

function Beside({ found, policy }) {
  const then = found.recorded.policy || 'its own policy';
  const [mine, theirs] = [hosts(found.recorded), hosts(found.other)];
  const names = [...new Set([...mine.keys(), ...theirs.keys()])].sort();
  const { refused, withheld } = found.other ?? {};
  const none = (found.objectives ?? []).filter((row) => row.recorded == null && row.other == null);
  const objectives = (found.objectives ?? []).filter((row) => !none.includes(row));
  // The objective and its parts are the deciding policy's own: those are below.
  const plain = (terms) => Object.fromEntries(Object.entries(terms ?? {}).filter(([name]) => name !== 'objective' && !name.startsWith('part')));
  return html`<p>${found.same ? `Made again by ${then}, which decided it, it comes out the same, byte by byte. What ${policy} makes of it is below.` : html`<span class="state bad">Made again by ${then}, which decided it, it does NOT come out as it was answered: ${found.differences.map((one) => `${one.field}: ${one.then}, now ${one.now}`).join('; ')}</span>`}</p>
    ${refused ? html`<p class="alert">${policy} refuses (${words(refused.reason)}): ${refused.message}</p>` : html`
    ${withheld && html`<p class="note">${policy} would give no hints here (${words(withheld.reason)}): the job's busiest link would be done after ${time(withheld.hinted_s)} with them, after ${time(withheld.default_s)} without. Its costs below are those of its placement.</p>`}
    ${none.map((row) => html`<p class="note">${row.policy} has no objective: ${row.policy === 'capacity' ? "it takes hosts in the order of heartbeats, as YARN's own scheduler does, and gives no placement a score" : 'it gives no placement a score'}.</p>`)}
    <${Terms} caption=${`Cost terms of ${then} and ${policy}; less is better`} heads=${[then, policy]} costs=${[plain(found.recorded_cost), plain(found.other_cost)]} />
    <${Table} caption="What each policy's objective says of both; less is better" empty="neither policy has one." by=${(row) => row.policy} rows=${objectives} columns=${[
    ['Objective of', (row) => row.policy], [then, (row) => number(row.recorded), 'n'], [policy, (row) => number(row.other), 'n'], ['Gain', (row) => (row.gain == null ? (row.recorded === 0 ? 'from 0' : '–') : percent(row.gain)), 'n'],
  ]} />
    <${Table} caption=${`Containers by host${theirs.size || refused ? '' : `; ${policy} names none, for it gives no hints`}`} empty="neither hints at any." by=${(name) => name} rows=${names} columns=${[
    ['Host', (name) => name], [then, (name) => mine.get(name) ?? (mine.size ? 0 : '–'), 'n'], [policy, (name) => theirs.get(name) ?? (theirs.size ? 0 : '–'), 'n'],
  ]} />`}`;
}
