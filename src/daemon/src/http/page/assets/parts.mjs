// Parts of all views. Names are children of elements, so texts: nothing here makes markup of them.
import { h, Component } from './vendor/preact.mjs';
import htm from './vendor/htm.mjs';
import uPlot from './vendor/uplot.mjs';

export const html = htm.bind(h);

const round = (value) => String(Number(value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)));
export const number = (value) => (value == null ? '–' : Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 0.01) ? value.toExponential(1) : value < 0 ? '−' + round(-value) : round(value));
export const percent = (share) => (share == null ? '–' : number(100 * share) + ' %');
const scaled = (value, step, units) => {
  let at = 0;
  while (value >= step && at < units.length - 1) { value /= step; at += 1; }
  return number(value) + ' ' + units[at];
};
export const bits = (value) => (value == null ? '–' : scaled(value, 1000, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s']));
export const bytes = (value) => (value == null ? '–' : scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']));
export const megabytes = (value) => bytes(value * 1048576);
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
export const words = (token) => String(token).replaceAll('_', ' ');
/** Names as people sort them: rack2 before rack10. */
export const byName = new Intl.Collator('en', { numeric: true }).compare;

/** A load's class, so that color and width say the same: free, low, middle, high, full. */
export const level = (share) => (share >= 0.9 ? 4 : share >= 0.7 ? 3 : share >= 0.4 ? 2 : share >= 0.1 ? 1 : 0);

/** A share as a bar with its figure. */
export const Bar = ({ share, label, kind = 'load-' + level(share) }) => html`
  <span class="bar"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
    <rect class="bar-all" width="100" height="10" /><rect class=${'bar-part ' + kind} width=${Math.max(0, Math.min(100, 100 * share))} height="10" />
  </svg><span>${label ?? percent(share)}</span></span>`;

/** Columns are [head, cell, kind]; kind "n" is a number. The first cell is the row's head. */
export function Table({ caption, columns, rows, by, empty = 'None.' }) {
  if (!rows.length) return html`<p class="empty">${caption}: ${empty}</p>`;
  return html`<div class="scroll" role="region" aria-label=${caption} tabindex="0"><table><caption>${caption}</caption>
    <thead><tr>${columns.map(([head, , kind]) => html`<th scope="col" class=${kind}>${head}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${by(row)}>${columns.map(([, cell, kind], at) => (at === 0
    ? html`<th scope="row" class=${kind}>${cell(row)}</th>` : html`<td class=${kind}>${cell(row)}</td>`))}</tr>`)}</tbody></table></div>`;
}

export const Facts = ({ rows }) => html`<dl class="facts">${rows.filter(Boolean).map(([name, value, kind]) => html`<div class=${kind ?? ''}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

/** A picture with an axis of time; `series` are [name, values, class]. The figures are in its label for who can't see it. */
export class Chart extends Component {
  draw() {
    this.plot?.destroy();
    const css = getComputedStyle(document.documentElement);
    const ink = css.getPropertyValue('--ink').trim();
    const line = css.getPropertyValue('--line').trim();
    const { series, unit, top } = this.props;
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: '12px system-ui' };
    this.plot = new uPlot({
      width: Math.max(200, this.box.clientWidth), height: 180, cursor: { drag: { x: false, y: false } },
      scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high ?? 0, top ?? 0, 1e-9)] } },
      axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => number(tick) + (unit ?? '')) }],
      series: [{}, ...series.map(([label, , color], at) => ({
        label, stroke: css.getPropertyValue(color).trim(), width: 2, dash: at % 2 ? [6, 4] : undefined, points: { show: false },
        value: (_, value) => (value == null ? '–' : number(value) + (unit ?? '')),
      }))],
    }, this.data(), this.box);
  }
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
    const last = this.props.series.map(([name, values]) => `${name} ${number(values.at(-1))}${this.props.unit ?? ''}`);
    return html`<div class="chart" ref=${(box) => { this.box = box; }} role="img" aria-label=${`${this.props.title}, last: ${last.join(', ')}`}></div>`;
  }
}
