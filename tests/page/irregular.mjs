// A network without tiers, as a jellyfish is: placed by its links, the same way each time; and a link of it that flaps.
import assert from 'node:assert/strict';

const SWITCHES = 20;
/** Each switch is linked with those so far on in a circle: six links each, 60 in all. */
const STEPS = [1, 3, 7];
const GBIT = '1000000000';
/** Switches that stand nearer than this to each other, in pixels, hide each other. */
const APART = 30;

/** Switches all of one tier; two hosts of the cluster that is fed hang on each of the first three. */
function network() {
  const name = (at) => `sw${at % SWITCHES}`;
  const all = [...Array(SWITCHES).keys()];
  const link = (id, a, b) => ({ id, a, b, bits_per_s: GBIT, up: true });
  const hosts = [0, 1, 2].flatMap((rack) => [`r${rack}n0`, `r${rack}n1`].map((host) => [host, rack]));
  return {
    switches: all.map((at) => ({ name: name(at), tier: 'edge' })),
    hosts: hosts.map(([host]) => ({ name: host })),
    links: [
      ...all.flatMap((at) => STEPS.map((step) => link(`l${at}-${(at + step) % SWITCHES}`, name(at), name(at + step)))),
      ...hosts.map(([host, rack]) => link(`nic-${host}`, host, name(rack))),
    ],
  };
}

/** Where switches stand, by name. */
const spots = (page) => page.locator('.map .switch').evaluateAll((all) => Object.fromEntries(all.map((one) => {
  const box = one.querySelector('rect');
  return [one.dataset.part, [Number(box.getAttribute('x')), Number(box.getAttribute('y'))]];
})));

export async function irregular({ page, hybrid, step, go, see, readable, until, picture }) {
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 960 });
  let placed;

  await step('an irregular network: switches placed by their links, none upon another', async () => {
    await hybrid.topology({ chains: { groups: [], boxes: [], chains: [] } });
    await hybrid.topology({ full: network() });
    await go(page, 'Network');
    await until(async () => (await page.locator('.map .switch').count()) === SWITCHES);
    placed = await spots(page);
    const at = Object.values(placed);
    const nearest = Math.min(...at.flatMap(([x, y], one) => at.slice(0, one).map(([u, v]) => Math.hypot(x - u, y - v))));
    assert.ok(nearest >= APART, `two switches are ${nearest} pixels apart`);
    assert.ok(new Set(at.map(([, y]) => y)).size > SWITCHES / 2, 'they stand in no row');
    const lines = await page.locator('.map g > line.touch').evaluateAll((all) => all.map((line) => ['x1', 'y1', 'x2', 'y2'].map((end) => line.getAttribute(end)).join()));
    assert.deepEqual([lines.length, new Set(lines).size], [60, 60], 'no link hides another');
    await see(page, /most links stay within one tier/);
    await readable(page);
    await picture(page, 'irregular-light');
  });

  await step('it is placed the same way again, and what changes of links moves nothing', async () => {
    for (const up of [false, true, false, true, false, true]) await hybrid.topology({ link: { id: 'l0-1', up } });
    await page.locator('.map g.damped .halo').first().waitFor({ state: 'attached' });
    assert.deepEqual(await spots(page), placed);
    await page.reload();
    await until(async () => (await page.locator('.map .switch').count()) === SWITCHES);
    assert.deepEqual(await spots(page), placed);
  });

  await step('a link that flaps says so: on the map, in the table, opened', async () => {
    await page.getByRole('row', { name: /^l0-1 up, flaps/ }).getByRole('link').first().press('Enter');
    await see(page, /it went down and up too often/);
    await page.locator('.map g.damped[data-part="link l0-1"]').waitFor({ state: 'attached' });
    assert.equal(await page.locator('.map g.damped').count(), 1);
  });
}
