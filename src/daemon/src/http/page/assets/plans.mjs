// Plans: which are kept, one as a Gantt chart, and how far its jobs are.
import { Facts, Panel, Table, bytes, cut, html, number, percent, span, when, words, zone } from './parts.mjs';
import { place, plan, plans, to } from './state.mjs';

const LEFT = 132;
const RIGHT = 16;
const WIDTH = 1180;
const BAND = 34;
const TOP = 10;
const COLORS = 6;
/** Times of a plan that was made of a trace count from its start. */
const REAL = 10 * 366 * 86400e3;

export function Plans() {
  const { chosen } = place.value;
  const found = plans.value;
  return html`${chosen && html`<${Chosen} name=${chosen} />`}
    ${!found ? html`<p>Asking for the plans.</p>` : found.error ? html`<p class="alert">${found.error}</p>` : html`
    <${Table} caption="Kept plans of recurring jobs" empty="none is kept. hintctl plan submit keeps one, [plan] makes them by schedule." by=${(row) => row.name} rows=${found.plans} columns=${[
    ['Plan', (row) => html`<a href=${to('plans', row.name)} aria-current=${row.name === chosen ? 'true' : undefined}>${row.name}</a>`],
    ['State', (row) => html`<span class=${'state ' + (row.expired ? 'warn' : row.state === 'active' ? 'good' : 'off')}>${row.state === 'active' && row.expired ? 'active, expired' : row.state}${row.before ? ', the one before' : ''}</span>`],
    ['Made by', (row) => `${row.policy}, ${row.origin}`],
    ['Jobs', (row) => row.jobs, 'n'],
    ['Racks', (row) => row.racks, 'n'],
    ['From', (row) => moment(row.from_ms)],
    ['Until', (row) => moment(row.until_ms)],
    ['Left', (row) => (row.left_ms ? span(row.left_ms) : 'over'), 'n'],
    ['Followed', (row) => row.followed.map((one) => `${one.policy}: ${one.followed} of ${one.followed + one.missed + one.expected}`).join(', ') || '–'],
  ]} />`}`;
}

const moment = (ms) => (ms < REAL ? `${number(ms / 1000)} s` : when(ms));

function Chosen({ name }) {
  const known = plan.value?.name === name ? plan.value : null;
  return html`<${Panel} id="plan" close="#/plans" title=${`Plan ${name}`}>
    ${!known ? html`<p>Asking for it.</p>` : known.error ? html`<p class="alert">${known.error}</p>` : html`<${Shown} found=${known.found} />`}<//>`;
}

function Shown({ found }) {
  const { plan: view } = found;
  const of = (state) => found.jobs.filter((job) => job.progress?.state === state).length;
  const followed = view.followed.find((one) => one.policy === found.followed_by);
  return html`${view.warnings.map((text) => html`<p class="note">${text}</p>`)}
    <${Facts} rows=${[
    ['State', view.state + (view.expired ? ', expired' : ''), view.expired ? 'warn' : ''],
    ['Made', `${moment(view.made_ms)} by ${view.policy} (${view.objective})`],
    ['Expected makespan', `${number(view.makespan_s)} s`],
    ['Mean completion', `${number(view.mean_completion_s)} s`],
    ['Sizes are off by', percent(view.prediction_error)],
    ['Heavy jobs', `${view.heavy} of ${view.jobs}`],
    found.followed_by && ['Followed by', found.followed_by],
    followed && ['Jobs with a run', `${followed.followed} of ${view.jobs}`],
    followed && ['Missed', String(followed.missed), followed.missed ? 'warn' : ''],
    followed && ['Leave the plan', String(followed.deviating), followed.deviating ? 'warn' : ''],
    followed && ['Stages released (dead racks)', String(followed.released), followed.released ? 'bad' : ''],
  ]} />
    <${Gantt} found=${found} />
    ${!found.followed_by && html`<p class="empty">${view.state === 'active' ? 'No policy that follows plans has any request yet.' : 'It is not in force: nothing is measured against it.'}</p>`}
    <${Table} caption=${`Jobs against the plan: ${of('running')} running, ${of('over')} over, ${of('expected')} expected, ${of('missed')} missed; ${found.jobs.length} of ${found.jobs_total} by start`}
      empty="it has none." by=${(job) => job.key + '#' + job.run} rows=${found.jobs} columns=${[
    ['Job', (job) => `${job.key} #${job.run}`],
    ['Planned', (job) => `${moment(job.start_ms)} to ${moment(job.end_ms)}`],
    ['Came', (job) => (job.progress?.came_ms == null ? '–' : late(job.progress.came_ms - job.arrival_ms))],
    ['State', (job) => html`<span class=${'state ' + kind(job)}>${job.progress?.state ?? '–'}</span>`],
    ['Maps', (job) => stage(job, 0), 'n'],
    ['Reduces', (job) => stage(job, 1), 'n'],
    ['Shuffle', (job) => bytes(job.shuffle_bytes), 'n'],
    ['Leaves the plan by', (job) => job.progress?.deviations.map(words).join(', ') || '–'],
    ['Application', (job) => (job.progress?.application_id ? html`<a href=${to('applications', job.progress.application_id)}>${job.progress.application_id}</a>` : '–')],
  ]} />`;
}

const late = (by) => (Math.abs(by) < 1000 ? 'on time' : by > 0 ? `${span(by)} late` : `${span(-by)} early`);
const kind = (job) => ({ missed: 'warn', running: 'good' }[job.progress?.state] ?? 'off');

/** Of a stage: launched of the run's tasks, else how many there are; in brackets what was planned, where it differs. */
function stage(job, at) {
  const now = job.progress?.stages[at];
  if (!now || (!now.tasks && now.launched == null)) return `${job.tasks[at]} planned`;
  const launched = now.launched == null ? `${now.tasks} asked` : `${now.launched} of ${now.tasks}`;
  const done = now.done == null ? '' : `, ${now.done} done`;
  return launched + done + (now.tasks === job.tasks[at] ? '' : ` (${job.tasks[at]} planned)`) + (now.released ? ', anywhere' : '');
}

/** Gives each slice containers of its own in its rack's band: those that are free when it starts, the lowest first. */
function bars(found) {
  const free = found.racks.map((rack) => [[0, rack.containers]]);
  const held = found.racks.map(() => []);
  const out = [];
  for (const slice of found.slices) {
    const over = held[slice.rack].filter((part) => part.end <= slice.start_ms);
    held[slice.rack] = held[slice.rack].filter((part) => part.end > slice.start_ms);
    free[slice.rack].push(...over.map((part) => [part.from, part.to]));
    free[slice.rack].sort((a, b) => a[0] - b[0]);
    const joined = [];
    for (const [from, upTo] of free[slice.rack]) {
      if (joined.length && joined.at(-1)[1] === from) joined.at(-1)[1] = upTo;
      else joined.push([from, upTo]);
    }
    let left = slice.containers;
    while (left > 0 && joined.length) {
      const [from, upTo] = joined[0];
      const taken = Math.min(left, upTo - from);
      left -= taken;
      if (from + taken === upTo) joined.shift();
      else joined[0] = [from + taken, upTo];
      held[slice.rack].push({ end: slice.end_ms, from, to: from + taken });
      out.push({ slice, from, to: from + taken });
    }
    free[slice.rack] = joined;
  }
  return out;
}

/** About eight times between two, at round ones. */
function ticks(from, upTo) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800].map((s) => s * 1000);
  const step = steps.find((one) => (upTo - from) / one <= 8) ?? steps.at(-1);
  const zone = from < REAL ? 0 : new Date(from).getTimezoneOffset() * 60000;
  const first = Math.ceil((from - zone) / step) * step + zone;
  return Array.from({ length: Math.max(0, Math.floor((upTo - first) / step) + 1) }, (_, at) => first + at * step);
}

function Gantt({ found }) {
  if (!found.slices.length) return html`<p class="empty">It places no tasks.</p>`;
  const from = Math.min(found.plan.from_ms, ...found.slices.map((slice) => slice.start_ms));
  const upTo = Math.max(from + 1000, ...found.slices.map((slice) => slice.end_ms));
  const x = (ms) => LEFT + ((WIDTH - LEFT - RIGHT) * (ms - from)) / (upTo - from);
  const height = TOP + BAND * found.racks.length + 26;
  const bottom = TOP + BAND * found.racks.length;
  const drawn = bars(found);
  return html`<div class="scroll gantt" role="region" aria-label="Gantt chart" tabindex="0">
    <svg role="img" viewBox=${`0 0 ${WIDTH} ${height}`} width=${WIDTH} height=${height}
      aria-label=${`${found.racks.length} racks, ${found.jobs.length} jobs, from ${moment(from)} to ${moment(upTo)}. The table below has the same.`}>
      ${ticks(from, upTo).map((ms) => html`<line class="tick" x1=${x(ms)} y1=${TOP} x2=${x(ms)} y2=${bottom} /><text class="small mid" x=${x(ms)} y=${bottom + 18}>${moment(ms)}</text>`)}
      ${found.racks.map((rack, at) => html`<rect class="band" x=${LEFT} y=${TOP + BAND * at} width=${WIDTH - LEFT - RIGHT} height=${BAND} />
        <text x="4" y=${TOP + BAND * at + 15}>${cut(rack.rack, 17)}</text><text class="small" x="4" y=${TOP + BAND * at + 29}>${rack.containers} containers</text>`)}
      ${drawn.map((bar) => html`<${BarOf} found=${found} bar=${bar} x=${x} />`)}
      ${found.at_ms >= from && found.at_ms <= upTo && html`<g class="now"><title>now, ${moment(found.at_ms)}</title><line x1=${x(found.at_ms)} y1=${TOP - 6} x2=${x(found.at_ms)} y2=${bottom + 4} /></g>`}
    </svg></div>
    <p class="legend" aria-hidden="true"><span><svg viewBox="0 0 40 12"><rect class="slice job-0 map" width="40" height="12" /></svg>maps</span><span><svg viewBox="0 0 40 12"><rect class="slice job-0" width="40" height="12" /></svg>reduces</span>
      <span><svg viewBox="0 0 40 12"><rect class="slice job-0" width="40" height="12" /><rect class="launched" y="8" width="24" height="4" /></svg>launched</span>
      <span><svg viewBox="0 0 40 12"><rect class="slice job-0 missed" width="40" height="12" /></svg>missed</span><span><svg viewBox="0 0 40 12"><line class="now-line" x1="20" y1="0" x2="20" y2="12" /></svg>now</span><span>${from < REAL ? "times: seconds since the trace's start" : `times: ${zone()}`}</span>
      ${found.slices.length < found.slices_total && html`<span>${found.slices.length} of ${found.slices_total} parts are drawn</span>`}
      ${found.racks.length < found.racks_total && html`<span>${found.racks.length} of ${found.racks_total} racks are drawn</span>`}</p>`;
}

function BarOf({ found, bar, x }) {
  const { slice, from, to: upTo } = bar;
  const job = found.jobs[slice.job];
  const rack = found.racks[slice.rack];
  const unit = (BAND - 4) / Math.max(1, rack.containers);
  const y = TOP + BAND * (slice.rack + 1) - 2 - unit * upTo;
  const [tall, wide] = [Math.max(2, unit * (upTo - from) - 0.6), Math.max(2, x(slice.end_ms) - x(slice.start_ms) - 0.6)];
  const [launched, tasks] = slice.launched ?? [0, 0];
  const share = tasks ? Math.min(1, launched / tasks) : 0;
  const name = `${job.key} #${job.run}`;
  const said = `${name}, ${slice.stage ? 'reduces' : 'maps'} in ${rack.rack}: ${slice.tasks} tasks in ${slice.containers} containers, ${moment(slice.start_ms)} to ${moment(slice.end_ms)}`
    + (job.progress ? `; ${job.progress.state}` : '') + (slice.launched ? `, ${launched} of ${tasks} launched here` : '');
  const room = Math.floor((wide - 8) / 6.6);
  return html`<g><title>${said}</title>
    <rect class=${`slice job-${slice.job % COLORS}${slice.stage ? '' : ' map'}${job.heavy ? '' : ' light'} ${job.progress?.state ?? ''}`} x=${x(slice.start_ms)} y=${y} width=${wide} height=${tall} />
    ${share > 0 && html`<rect class="launched" x=${x(slice.start_ms)} y=${y + tall - Math.min(4, tall)} width=${wide * share} height=${Math.min(4, tall)} />`}
    ${room >= 4 && tall >= 13 && html`<text class="in" x=${x(slice.start_ms) + 4} y=${y + Math.min(tall - 3, tall / 2 + 4)}>${cut(name, room)}</text>`}</g>`;
}
