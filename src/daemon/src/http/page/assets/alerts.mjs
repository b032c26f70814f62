// Prometheus's alerts of this daemon: judged here by its own gauges where that is enough, and each with its runbook.
import { Facts, Panel, Table, html, severity, span } from './parts.mjs';
import { Markdown } from './markdown.mjs';
import { alerts, place, to } from './state.mjs';

const ORDER = ['firing', 'pending', 'quiet', 'no_series', 'unknown'];
const STATES = {
  firing: ['FIRING', 'bad'],
  pending: ['pending', 'warn'],
  quiet: ['quiet', 'good'],
  no_series: ['nothing of the kind here', 'off'],
  unknown: ['judged by Prometheus', 'off'],
};
/** A rule's text without the places that Prometheus fills: its value as N, and labels by their names. */
const plain = (text) => text.replace(/\{\{\s*\$labels\.(\w+)[^}]*\}\}/g, 'the $1').replace(/\{\{[^}]*\}\}/g, 'N').replaceAll('`', '');
const said = (rule) => STATES[rule.state][0] + (rule.judged === 'in_part' ? '; the rest is judged by Prometheus' : '');
const state = (rule) => html`<span class=${'state ' + STATES[rule.state][1]}>${said(rule)}</span>`;

export function Alerts() {
  const { chosen } = place.value;
  const found = alerts.value;
  if (!found) return html`<p>Asking for the alerts.</p>`;
  if (found.error) return html`<p class="alert">${found.error}</p>`;
  const rows = [...found.rules].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
  const open = found.rules.find((rule) => rule.name === chosen);
  const count = (name) => found.rules.filter((rule) => rule.state === name).length;
  return html`
    ${chosen && (open ? html`<${Open} rule=${open} />` : html`<p class="alert">There is no alert ${chosen}.</p>`)}
    <${Facts} rows=${[
    ['Firing', String(count('firing')), count('firing') ? 'bad' : ''], ['Pending', String(count('pending')), count('pending') ? 'warn' : ''],
    ['Quiet', String(count('quiet'))], ['Judged by Prometheus', String(count('unknown'))],
  ]} />
    <${Table} caption="Rules of deploy/prometheus/alerts.yml. Those that look back in time are judged by Prometheus, the others here as well, every 10 s" name="alerts" by=${(rule) => rule.name} rows=${rows} columns=${[
    ['Alert', (rule) => html`<a href=${to('alerts', rule.name)} aria-current=${rule.name === chosen ? 'true' : undefined}>${rule.name}</a>`, '', (rule) => rule.name],
    ['State', state, '', said],
    ['How urgent', severity, '', (rule) => rule.severity],
    ['What it means', meaning],
    ['Runbook', (rule) => html`<a href=${to('alerts', rule.name)} aria-label=${'Runbook of ' + rule.name}>runbook</a>`],
  ]} />`;
}

/** What is so while it fires, and what comes of it: the second alone often has no subject. */
function meaning(rule) {
  const is = rule.series[0]?.summary ?? rule.summary;
  if (!is) return plain(rule.description);
  const begins = plain(is);
  return `${begins[0].toUpperCase()}${begins.slice(1)}. ${plain(rule.description)}`;
}

/** Where in the page it is seen what an alert is about. */
const SEEN = {
  HintdLinkDown: ['network', 'failed', 'Links that are down'], HintdPairsCut: ['network', 'failed', 'Links that are down'],
  HintdNodesSilent: ['nodes', '', 'Racks and their nodes'], HintdFeedStopped: ['servers', '', 'Feeds'], HintdReloadRefused: ['configuration', '', 'Why it is refused'],
  HintdControllerAway: ['servers', '', 'Servers'], HintdWatcherSilent: ['servers', '', 'Watchers of routes'], HintdResourceManagerSilent: ['servers', '', 'Servers'],
  HintdNameNodeSilent: ['servers', '', 'Servers'], HintdHistoryServerSilent: ['servers', '', 'Servers'], HintdMiddleboxDown: ['circuits', '', 'Middleboxes'],
  HintdChainsBroken: ['circuits', '', 'Chains'], HintdHintsHarm: ['queues', '', 'Completion times, hinted and held out'], HintdHintsUnused: ['queues', '', 'Followed, by queue'],
};

/** A heading that a runbook names: another alert's has its runbook here. */
function heading(target) {
  const name = target.startsWith('#') && alerts.value?.rules?.find((rule) => '#' + rule.name.toLowerCase() === target)?.name;
  return name ? to('alerts', name) : null;
}

function Open({ rule }) {
  const [view, chosen, words] = SEEN[rule.name] ?? [];
  return html`<${Panel} id="alert" close="#/alerts" title=${rule.name}>
    <${Facts} rows=${[['State', said(rule), STATES[rule.state][1]], ['How urgent', `${severity(rule)} (severity ${rule.severity})`], ['Fires after', rule.for_ms ? span(rule.for_ms) : 'at once']]} />
    ${rule.series.map((one) => html`<p class=${one.firing ? 'alert' : 'note'}>${plain(one.summary)} <span>(true for ${span(one.true_for_ms)})</span></p>`)}
    <p>${rule.series.length ? plain(rule.description) : meaning(rule)}</p>
    ${view && html`<p>In this page: <a href=${to(view, chosen)}>${words}</a></p>`}
    <h3>Runbook</h3><${Markdown} text=${rule.runbook} link=${heading} />
    <p class="empty">The alert is true where <code>${rule.expression}</code></p>
    <p class="empty">The runbook stands at ${rule.runbook_url}, too</p><//>`;
}
