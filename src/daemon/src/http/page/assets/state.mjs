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
/** Kept plans: {plans} or {error}; and the one that is open: {name, found} or {name, error}. */
export const plans = signal(null);
export const plan = signal(null);
/** Circuits and chains, and alerts: what the daemon says, or {error}. */
export const circuits = signal(null);
export const alerts = signal(null);
/** The open decision made again: {id, policy}, and found or error once there is an answer. */
export const replayed = signal(null);
/** What the decisions are filtered by. */
export const filter = signal('');

const SILENT_MS = 5000;
const RETRY_MS = 2000;
const api = (path) => new URL('api/' + path, document.baseURI.replace(/\/page\/.*$/, '/page/'));

function read() {
  const [view, ...rest] = location.hash.replace(/^#\//, '').split('/');
  let chosen = rest.join('/');
  try { chosen = decodeURIComponent(chosen); } catch { chosen = ''; }
  return { view: view || 'overview', chosen };
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
function listen() {
  source?.close();
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
    if (place.value.chosen === chosen) rack.value = found;
  } catch (error) { rack.value = { rack: chosen, error: error.message, nodes: [] }; }
}

async function loadExplained() {
  const { view, chosen } = place.value;
  if (view !== 'decisions' || !chosen) { explained.value = null; return; }
  try {
    const found = await ask('explain?id=' + encodeURIComponent(chosen));
    if (place.value.chosen === chosen) explained.value = { id: chosen, found };
  } catch (error) { explained.value = { id: chosen, error: error.message }; }
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
  place.value = read();
  for (const load of [loadHistory, loadRack, loadExplained, loadOwn, loadPlan]) load();
}

/** Begins to listen; `everySecond` is called for what only time changes. */
export function start(everySecond) {
  addEventListener('hashchange', moved);
  listen();
  moved();
  setInterval(() => {
    if (link.value === 'live' && Date.now() - heardAt.value > SILENT_MS) link.value = 'lost';
    everySecond();
  }, 1000);
  setInterval(loadHistory, 10000);
  setInterval(() => { if (!document.hidden) for (const load of [loadRack, loadExplained, loadOwn, loadPlan]) load(); }, 5000);
}
