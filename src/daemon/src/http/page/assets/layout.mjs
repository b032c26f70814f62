// Where switches stand on the map: in rows by tier, or, where most links stay within one tier, by who is linked with whom.
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from './vendor/d3-force.mjs';
import { byName } from './parts.mjs';

const TIERS = ['optical', 'core', 'aggregation', 'edge'];
const ROW = 130;
const TOP = 36;
/** Room below a switch: its hosts, and the bar of the busiest one's link. */
const BELOW = 58;
const NARROW = 26;
const WIDE = 92;
const WIDTH_MIN = 520;
/** Beyond so many switches in a row, or in all where there are no rows, they have no room for their names. */
const NAMED_ROW = 14;
const NAMED_ALL = 60;
/** Ticks of the forces: as many as d3-force makes until it is at rest; fewer in large networks, which is half a second of a browser. */
const TICKS = 300;
const TICKS_LEAST = 60;
const TICKS_SWITCHES = 90_000;

const byTier = (switches) => TIERS.map((tier) => switches.filter((one) => one.tier === tier).sort((a, b) => byName(a.name, b.name))).filter((tier) => tier.length);

function inRows(tiers) {
  const most = Math.max(...tiers.map((tier) => tier.length), 1);
  const step = most > NAMED_ROW ? NARROW : WIDE;
  const width = Math.max(most * step, WIDTH_MIN);
  const spots = new Map();
  tiers.forEach((tier, row) => tier.forEach((one, at) => spots.set(one.name, { x: (width * (at + 0.5)) / tier.length, y: TOP + row * ROW })));
  return { spots, width, height: TOP + Math.max(0, tiers.length - 1) * ROW + BELOW, labels: step === WIDE, step, rows: true };
}

/** Links between two switches of one tier are more than the others: rows would draw them all on one line. */
function isIrregular(switches, links) {
  const tier = new Map(switches.map((one) => [one.name, one.tier]));
  const within = links.filter((link) => tier.get(link.a) === tier.get(link.b)).length;
  return 2 * within > links.length;
}

/** The same network is placed the same way: switches begin in the order of their names, and nothing is random or timed. */
function byForces(tiers, links) {
  const nodes = tiers.flat().map((one) => ({ id: one.name }));
  const labels = nodes.length <= NAMED_ALL;
  const step = labels ? WIDE : NARROW;
  const simulation = forceSimulation(nodes).stop()
    .force('link', forceLink(links.map((link) => ({ source: link.a, target: link.b }))).id((node) => node.id).distance(2 * step))
    .force('charge', forceManyBody().strength(-10 * step))
    .force('collide', forceCollide(0.75 * step))
    .force('x', forceX().strength(0.05))
    .force('y', forceY().strength(0.1)); // a screen is wider than high
  simulation.tick(Math.max(TICKS_LEAST, Math.min(TICKS, Math.round(TICKS_SWITCHES / Math.max(1, nodes.length)))));
  const ends = (of) => [Math.min(...nodes.map(of)), Math.max(...nodes.map(of))];
  const [[left, right], [upper, lower]] = [ends((node) => node.x), ends((node) => node.y)];
  const width = Math.max(right - left + step, WIDTH_MIN);
  const aside = (width - (right - left)) / 2 - left;
  const spots = new Map(nodes.map((node) => [node.id, { x: Math.round(node.x + aside), y: Math.round(node.y - upper + TOP) }]));
  return { spots, width: Math.round(width), height: Math.round(lower - upper + TOP + BELOW), labels, step, rows: false };
}

/** The last network that forces placed: documents come each second, and the network seldom changes. */
const placed = { of: '', as: null };

/**
 * Whose hosts are behind a link: for each end that has any, {top, way, names}, the switches from that end down, and the way of
 * the link that leads from there. An end above the other has the hosts of all the network below it: nobody's in particular.
 */
export function below(switches, links, link) {
  const tier = new Map(switches.map((one) => [one.name, TIERS.indexOf(one.tier)]));
  const ends = [link.a, link.b];
  return ends.flatMap((top, way) => {
    if (!tier.has(top) || tier.get(top) < tier.get(ends[1 - way])) return [];
    const names = [top];
    for (const name of names) {
      for (const one of links) {
        const next = one.a === name ? one.b : one.b === name ? one.a : null;
        if (next != null && tier.get(next) > tier.get(name) && !names.includes(next)) names.push(next);
      }
    }
    return [{ top, way, names }];
  });
}

/** Of switches and the links between them; loads and states move nothing. */
export function layout(switches, links) {
  const tiers = byTier(switches);
  const known = new Set(tiers.flat().map((one) => one.name));
  const joins = links.filter((link) => link.a !== link.b && known.has(link.a) && known.has(link.b)).sort((a, b) => byName(a.id, b.id));
  let at;
  if (!isIrregular(switches, joins)) at = inRows(tiers);
  else {
    const of = JSON.stringify([tiers.flat().map((one) => one.name), joins.map((link) => [link.a, link.b])]);
    if (placed.of !== of) Object.assign(placed, { of, as: byForces(tiers, joins) });
    at = placed.as;
  }
  const spots = new Map(tiers.flat().map((one) => [one.name, { ...at.spots.get(one.name), one, width: Math.min(at.step - 6, 84) }]));
  return { ...at, tiers, spots };
}
