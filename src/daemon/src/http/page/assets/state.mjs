// What the page knows: the latest document, whether it is live, and where the reader is. Nothing here touches the page.
import { signal, batch } from './vendor/signals-core.mjs';

/** The latest document, and the one before it; null: none yet. */
export const doc = signal(null);
export const before = signal(null);
/** opening, live, lost (no answer), closed (the session ended), full (too many browsers). */
export const link = signal('opening');
/** When the last document came, by this browser's clock; null: never. */
export const heardAt = signal(null);
/** Set once the daemon was another one than before. */
export const restarted = signal(false);
/** View and what is chosen in it, from the address: #/network/LINK. */
export const place = signal(read());
/** Rates of the last hour, and of the chosen link. */
export const history = signal(null);
export const settings = signal(null);
/** Nodes of the rack that is open: {rack, nodes} or {rack, error}. */
export const rack = signal(null);
/** The explained decision: {id, found} or {id, error}. */
export const explained = signal(null);
/** Decisions of the open application, older ones too: {id, decisions, total}, or {id, error}. */
export const decided = signal(null);
/** Kept plans: {plans} or {error}; and the one that is open: {name, found} or {name, error}. */
export const plans = signal(null);
export const plan = signal(null);
/** Circuits and chains, and alerts: what the daemon says, or {error}. */
export const circuits = signal(null);
export const alerts = signal(null);
/** The open decision made again: {id, policy}, and found or error once there is an answer. */
export const replayed = signal(null);
/** What decisions, and links, are filtered by; and whether decisions and applications only are those not all followed. */
export const filter = signal('');
export const linkFilter = signal('');
export const onlyMissed = signal(false);
/** Where the reader came from to what is open, the latest last; page.mjs keeps it. It changes before `place` does. */
export const trail = [];
export const cameFrom = () => trail.at(-1) ?? null;
/** Links of hosts by rack, as far as they were asked for: {at, links}. */
export const hostLinks = signal(new Map());

const SILENT_MS = 5000;
const RETRY_MS = 2000;
/** A stream that stays open and says nothing for so long is given up: what lies between may have lost it. */
const GIVE_UP_MS = 15000;
/** Links of a rack's hosts are asked for again after this long; there is one question at a time, two a second at most. */
const HOST_LINKS_MS = 5000;
/** Outcomes that are remembered after the daemon has forgotten them. */
const OUTCOMES_MAX = 200;
const api = (path) => new URL('api/' + path, document.baseURI.replace(/\/page\/.*$/, '/page/'));

/** The place that the address names. */
export function read() {
  const [view, ...rest] = location.hash.replace(/^#\//, '').split('/');
  let chosen = rest.join('/');
  try { chosen = decodeURIComponent(chosen); } catch { chosen = ''; }
  return { view: view || 'overview', chosen };
}

/** Chosen in place of a decision: those that were not followed, `not-followed` or `not-followed/QUEUE`. */
const NOT_FOLLOWED = 'not-followed';
export const toMissed = (queue) => to('decisions', NOT_FOLLOWED + (queue ? '/' + queue : ''));

/** An address of that kind sets the filters; the place is the list of decisions. */
function filtered() {
  const found = read();
  const [kind, ...queue] = found.chosen.split('/');
  if (found.view !== 'decisions' || kind !== NOT_FOLLOWED) return found;
  onlyMissed.value = true;
  filter.value = queue.join('/');
  window.history.replaceState(null, '', to('decisions'));
  return { ...found, chosen: '' };
}

/** The address of a view. */
export const to = (view, chosen) => '#/' + view + (chosen ? '/' + encodeURIComponent(chosen) : '');

/** Asks for JSON: the value, or throws in words. */
async function ask(path) {
  const answer = await fetch(api(path), { credentials: 'same-origin', cache: 'no-store' });
  if (answer.status === 401) link.value = 'closed';
  if (!answer.ok) throw new Error((await answer.text()).trim() || 'HTTP ' + answer.status);
  return answer.json();
}

/** Per second between the two latest documents, as hintctl top counts. */
export function rates() {
  const [now, then] = [doc.value, before.value];
  const seconds = now && then ? (now.status.uptime_ms - then.status.uptime_ms) / 1000 : 0;
  const of = (name) => {
    const by = seconds > 0 ? (now.status.counters[name] ?? 0) - (then.status.counters[name] ?? 0) : 0;
    return seconds > 0 ? Math.max(0, by) / seconds : 0;
  };
  const cpu = seconds > 0 ? Math.max(0, now.status.process_cpu_s - then.status.process_cpu_s) / seconds : 0;
  return {
    answered: of('requests_answered'), refused: of('requests_refused'),
    hinted: of('hints_issued'), withheld: of('hints_withheld'), cpu,
  };
}

/** How old a link's load is now: measured ones are as old as the counters. A row of `hostLinks` has `at`, when it came. */
export function loadAge(load) {
  const counters = doc.value?.status.ages.find((age) => age.source === 'link_stats')?.age_ms ?? 0;
  const measured = load.load_age_ms ?? load.counters_ms ?? counters;
  return (load.load_source === 'measured' ? measured : 0) + since(load.at);
}

/** Milliseconds since a document came: the latest one, or another. */
export const since = (at) => Math.max(0, Date.now() - (at ?? heardAt.value ?? Date.now()));

function take(found) {
  const known = doc.value;
  const another = known && known.status.instance_id !== found.status.instance_id;
  const configured = known && known.status.config_generation !== found.status.config_generation;
  batch(() => {
    before.value = another ? null : known;
    doc.value = found;
    heardAt.value = Date.now();
    link.value = 'live';
    if (another) restarted.value = true;
  });
  if (another || configured || !settings.value) loadSettings();
}

let source = null;
let askedAt = 0;
function listen() {
  source?.close();
  askedAt = Date.now();
  source = new EventSource(api('stream'));
  source.onmessage = (event) => take(JSON.parse(event.data));
  source.onerror = () => {
    // While it only lost its connection the browser comes again by itself; an answer that is no stream ends it.
    if (source.readyState !== EventSource.CLOSED) return;
    ask('settings').then(() => { link.value = 'full'; }, () => { if (link.value !== 'closed') link.value = 'lost'; });
    setTimeout(listen, RETRY_MS);
  };
}

async function loadSettings() {
  try { settings.value = await ask('settings'); } catch { /* the next document asks again */ }
}

async function loadHistory() {
  const { view, chosen } = place.value;
  if (view !== 'overview' && view !== 'queues' && !(view === 'network' && chosen)) return;
  try {
    const found = await ask('history' + (view === 'network' ? '?link=' + encodeURIComponent(chosen) : ''));
    history.value = { of: chosen, ...found };
  } catch { /* shown as it was */ }
}

async function loadRack() {
  const { view, chosen } = place.value;
  if (view !== 'nodes' || !chosen) { rack.value = null; return; }
  try {
    const found = await ask('nodes?rack=' + encodeURIComponent(chosen));
    if (place.value.chosen === chosen) rack.value = { ...found, at: Date.now() };
  } catch (error) { rack.value = { rack: chosen, error: error.message, nodes: [] }; }
}

let asking = false;
/** Switches whose hosts' links are wanted first; network.mjs says them. */
export const wantedSwitches = { names: new Set() };
/** Asks for the links of one rack's hosts: of one that was not asked for yet, then of those that are wanted, then the oldest. */
async function loadHostLinks() {
  const racks = doc.value?.racks.map((row) => row.rack) ?? [];
  if (place.value.view !== 'network' || document.hidden || asking || link.value !== 'live') return;
  const known = hostLinks.value;
  const text = linkFilter.value.trim();
  const age = (name) => Date.now() - (known.get(name)?.at ?? 0);
  const { names } = wantedSwitches;
  const found = (name) => known.get(name)?.links.some((one) => (text !== '' && isOf(one, text)) || names.has(one.a) || names.has(one.b));
  const due = racks.filter((name) => age(name) > HOST_LINKS_MS);
  if (!due.length) return;
  const order = (name) => (known.has(name) ? (found(name) ? 1 : 2) : 0);
  const name = due.reduce((best, one) => (order(one) - order(best) || age(best) - age(one)) < 0 ? one : best);
  asking = true;
  try {
    const counters = doc.value.status.ages.find((one) => one.source === 'link_stats')?.age_ms ?? 0;
    const { nodes } = await ask('nodes?rack=' + encodeURIComponent(name));
    const at = Date.now();
    const links = nodes.filter((node) => node.link).map((node) => ({ ...node.link, at, counters_ms: counters, host: node.host, rack: name }));
    hostLinks.value = new Map([...hostLinks.value, [name, { at, links }]].filter(([rack]) => racks.includes(rack)));
  } catch { /* shown as it was, with its age; asked again */ } finally { asking = false; }
}

/** Whether a text is part of a link's name, an end's or its rack's. */
export function isOf(one, text) {
  const wanted = text.toLowerCase();
  return [one.id, one.a, one.b, one.rack ?? ''].some((name) => name.toLowerCase().includes(wanted));
}

/** What became of decisions, as it was seen last: the daemon keeps it for a while only. */
const outcomes = new Map();
function remembered(found) {
  if (found.outcome) {
    outcomes.delete(found.decision_id);
    outcomes.set(found.decision_id, { outcome: found.outcome, at: Date.now() });
    if (outcomes.size > OUTCOMES_MAX) outcomes.delete(outcomes.keys().next().value);
    return found;
  }
  const seen = outcomes.get(found.decision_id);
  return seen ? { ...found, outcome: seen.outcome, outcome_at: seen.at } : found;
}

async function loadExplained() {
  const { view, chosen } = place.value;
  if (view !== 'decisions' || !chosen) { explained.value = null; return; }
  try {
    const found = await ask('explain?id=' + encodeURIComponent(chosen));
    if (place.value.chosen === chosen) explained.value = { id: chosen, found: remembered(found) };
  } catch (error) {
    // What was shown stays while the daemon is gone.
    if (explained.value?.id !== chosen || !explained.value.found || link.value === 'live') explained.value = { id: chosen, error: error.message };
  }
}

async function loadDecided() {
  const { view, chosen } = place.value;
  if (view !== 'applications' || !chosen) { decided.value = null; return; }
  try {
    const found = await ask('decisions?application=' + encodeURIComponent(chosen));
    if (place.value.chosen === chosen) decided.value = { id: chosen, ...found };
  } catch (error) {
    if (decided.value?.id !== chosen || !decided.value.decisions) decided.value = { id: chosen, error: error.message };
  }
}

/** Views with a document of their own, which is asked for while they are open. */
const OWN = { plans: ['plans', plans], circuits: ['circuits', circuits], alerts: ['alerts', alerts] };

async function loadOwn() {
  const { view } = place.value;
  if (!Object.hasOwn(OWN, view)) return;
  const [path, into] = OWN[view];
  // What was shown stays while the daemon is gone; the head of the page says since when.
  try { into.value = await ask(path); } catch (error) { if (!into.value || into.value.error) into.value = { error: error.message }; }
}

async function loadPlan() {
  const { view, chosen } = place.value;
  if (view !== 'plans' || !chosen) { plan.value = null; return; }
  try {
    const found = await ask('plan?name=' + encodeURIComponent(chosen));
    if (place.value.chosen === chosen) plan.value = { name: chosen, found };
  } catch (error) { plan.value = { name: chosen, error: error.message }; }
}

/** Makes a decision again, under another policy beside the one that made it. */
export async function replay(id, policy) {
  const asked = { id, policy };
  replayed.value = asked;
  const path = 'replay?id=' + encodeURIComponent(id) + '&policy=' + encodeURIComponent(policy);
  const answer = await ask(path).then((found) => ({ found }), (error) => ({ error: error.message }));
  // Another one was asked for meanwhile.
  if (replayed.value === asked) replayed.value = { ...asked, ...answer };
}

function moved() {
  batch(() => { place.value = filtered(); });
  for (const load of [loadHistory, loadRack, loadExplained, loadDecided, loadOwn, loadPlan]) load();
}

/** Begins to listen; `everySecond` is called for what only time changes. */
export function start(everySecond) {
  addEventListener('hashchange', moved);
  listen();
  moved();
  setInterval(() => {
    if (link.value === 'live' && Date.now() - heardAt.value > SILENT_MS) link.value = 'lost';
    if (source.readyState === EventSource.OPEN && Date.now() - Math.max(heardAt.value ?? 0, askedAt) > GIVE_UP_MS) listen();
    everySecond();
  }, 1000);
  setInterval(loadHistory, 10000);
  setInterval(loadHostLinks, 500);
  setInterval(() => { if (!document.hidden) for (const load of [loadRack, loadExplained, loadDecided, loadOwn, loadPlan]) load(); }, 5000);
}
