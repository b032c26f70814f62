// What an operator asks of the page in an incident: which link is hot, whose traffic is on it, why a decision is as it is. Steps
// of the suite's first daemon, whose documents are made to say what is asked about.
import assert from 'node:assert/strict';
import { document_, instead } from './incident.mjs';

const table = (page, caption) => page.locator('main table', { has: page.locator('caption', { hasText: caption }) });
const at = (page, address) => page.evaluate((to) => { location.hash = to; }, '#/' + address);

/** The hour as if the daemon had run for all of it; what is not told is 0. */
const hour = (json, now) => ({ ...json, at_ms: Array.from({ length: 360 }, (_, at) => now - (359 - at) * 10_000), rates: Object.fromEntries(Object.keys(json.rates).map((name) => [name, Array(360).fill(0)])) });

/** A link's user that sends so much from a to b, and nothing back. */
const user = (id, rate) => ({ application_id: id, attempt: 1, bytes: 9e8, bits_per_s: rate, a_to_b_bytes: 9e8, b_to_a_bytes: 0, a_to_b_bits_per_s: rate, b_to_a_bits_per_s: 0, fills: true, above_measured: false });

/** Tables that are wider than their place, and by how many pixels. */
const cut = (page) => page.locator('.scroll').evaluateAll((all) => all.map((one) => one.scrollWidth - one.clientWidth).filter((by) => by > 0));

export async function answers({ page, step, go, see, readable, until, picture, down }) {
  await step('which link was hot over the last minutes, and which way; what is unknown is explained once', async () => {
    const found = await document_(page);
    const [hot] = found.network.links.filter((link) => link.up);
    Object.assign(hot, { a_to_b_bits_per_s: 8e8, users: [], users_reason: '', a_to_b_unaccounted_bits_per_s: 8e8, load_source: 'measured', load_age_ms: 0 });
    found.status.ages.find((age) => age.source === 'link_stats').stale = false;
    hot.fullness = { a_to_b_full: true, b_to_a_full: false, a_to_b_unknown: true, b_to_a_unknown: false };
    const tell = await instead(page);
    tell(found);
    await page.route('**/api/history*', async (route) => {
      const answer = await route.fetch();
      const busiest = [{ link: hot.id, way: 1, mean: [0.83, 0.52], full: [0.6, 0.2] }, { link: 'of a host', way: 0, mean: [0.5, 0.5], full: [0, 0] }];
      await route.fulfill({ response: answer, json: { ...hour(await answer.json(), found.at_ms), busiest } });
    });
    await go(page, 'Overview');
    await page.reload();
    const rows = table(page, 'Busiest over the last minutes').locator('tbody tr');
    await rows.first().waitFor();
    assert.equal(await rows.count(), 1);
    assert.match((await rows.first().innerText()).replace(/\s+/g, ' '), new RegExp(`${hot.id} ${hot.b} → ${hot.a} 83 % 60 % 52 % 20 %`));
    // A mean of less than its head says is told so: the link was down until 95 s ago.
    hot.last_outage = { ended_ms: 95_000, lasted_ms: 400_000, said_by: 'ryu', down_at_ms: 0 };
    tell(found);
    await rows.filter({ hasText: /83 %, of about 100 s\s*60 %\s*52 %, of about 8 min/ }).waitFor();
    await table(page, 'Busiest now').locator('tr', { hasText: `unknown: 800 Mbit/s ${hot.a} → ${hot.b}` }).waitFor();
    assert.equal(await page.getByText('files that maps read').count(), 1);
    await page.unroute('**/api/history*');
    await tell.end();
  });

  await step('rows keep their order while the pointer is over them', async () => {
    const found = await document_(page);
    const up = found.network.links.filter((link) => link.up);
    const loaded = (order) => order.forEach((link, place) => { link.a_to_b_bits_per_s = link.b_to_a_bits_per_s = (order.length - place) * 1e8 / 2; });
    const tell = await instead(page);
    loaded(up);
    tell(found);
    await go(page, 'Overview');
    await page.mouse.move(2, 2);
    await page.reload();
    const now = table(page, 'Busiest now');
    const names = () => now.locator('tbody th').allInnerTexts();
    await until(async () => (await names()).join() === up.slice(0, 5).map((link) => link.id).join());
    const before = await names();
    await now.scrollIntoViewIfNeeded();
    await now.locator('tbody tr').first().hover();
    await now.getByText('Rows keep their order').waitFor();
    // The others become the busiest: those that are seen stay as they stand, and what is not new does not come between.
    loaded([up[1], up[0], ...up.slice(2)]);
    up[0].users_total = 77;
    tell(found);
    await until(async () => (await now.locator('tbody tr').first().innerText()).replace(/\s+/g, ' ').includes('44 %') || (await names())[0] !== before[0] || (await now.locator('tbody td').first().innerText()).startsWith('50'));
    assert.deepEqual(await names(), before);
    await page.mouse.move(2, 2);
    await until(async () => (await names()).slice(0, 2).join() === [up[1].id, up[0].id].join());
    // A mouse that lies there for half a minute, which is short here, holds nothing.
    await page.evaluate(() => {
      const real = window.setTimeout;
      window.setTimeout = (work, ms, ...more) => real(work, ms === 30_000 ? 300 : ms, ...more);
    });
    await now.locator('tbody tr').first().hover();
    loaded(up);
    tell(found);
    await until(async () => (await names()).slice(0, 2).join() === [up[0].id, up[1].id].join());
    assert.equal(await now.getByText('Rows keep their order').count(), 0);
    await tell.end();
  });

  await step("an application's page: its older decisions, its own share by direction, what ended", async () => {
    const found = await document_(page);
    const [first] = found.decisions;
    const [hot, idle] = found.network.links.filter((link) => link.up);
    const id = 'application_7_0001';
    Object.assign(hot, { a_to_b_bits_per_s: 0.728 * hot.bits_per_s, load_source: 'measured', load_age_ms: 0, users: [user(id, 0.09 * hot.bits_per_s)] });
    Object.assign(idle, { users: [user(id, 8)] });
    found.applications = [{ application_id: id, attempt: 1, leases: 0, requests: 1, busiest_link: hot.id, busiest_share: 0.728, busiest_measured: true }];
    found.applications_total = 1;
    found.decisions = found.decisions.filter((row) => row.application_id !== id);
    found.status.counters.records_kept = found.decisions.length + 1000;
    found.at_ms = first.at_ms + 1000;
    const tell = await instead(page);
    tell(found);
    const ask = '**/api/decisions?application=*';
    await page.route(ask, (route) => route.fulfill({ json: { application_id: id, decisions: [{ ...first, application_id: id, decision_id: 'feedfacefeedfacefeedface00000001' }], total: 1, kept: '' } }));
    await go(page, 'Applications');
    await page.reload();
    await page.getByRole('row', { name: new RegExp(`^${first.application_id} .* ended; decided`) }).first().waitFor();
    // Its own share is the bar, and not the load that is everybody's.
    await page.getByRole('columnheader', { name: 'Load of all' }).waitFor();
    const own = page.locator('main table', { has: page.locator('caption', { hasText: 'attempts that asked' }) }).locator('tbody tr', { hasText: id });
    assert.match(await own.innerText(), /~9 %\s+72.8 %/);
    assert.deepEqual(await own.locator('.bar-part').evaluateAll((all) => all.map((one) => [one.getAttribute('class'), Math.round(Number(one.getAttribute('width')))])), [['bar-part one', 9]]);
    assert.match(await page.getByRole('row', { name: new RegExp(`^${first.application_id} `) }).first().innerText(), new RegExp(`${first.user}\\s+${first.queue}`));
    await at(page, 'applications/' + id);
    await see(page, 'Its decisions, 1; each says');
    await page.locator('section.panel a[href="#/decisions/feedfacefeedfacefeedface00000001"]').waitFor();
    await see(page, new RegExp(`${hot.id}, ${hot.a} → ${hot.b}: 72.8 % used, its own share 9 %`));
    const sends = table(page, 'Where it sends between switches');
    assert.deepEqual((await sends.locator('tbody tr').allInnerTexts()).map((text) => text.replace(/\s+/g, ' ').replace(/~\S+ \S+ /, '')), [`${hot.id} ${hot.a} → ${hot.b} 9 % 72.8 %`]);
    await see(page, '1 direction more where it sends less than a thousandth');
    // Without the daemon's answer it is said what was not looked at.
    await page.unroute(ask);
    await page.route(ask, (route) => route.fulfill({ status: 503, body: 'not now\n' }));
    await page.reload();
    await see(page, /none among the latest \d+ of all applications; 1000 older ones are recorded/);
    await page.unroute(ask);
    await go(page, 'Decisions');
    await page.getByLabel('Only with').fill('application_8_0001');
    await page.locator('#older', { hasText: /Not among the latest \d+; 1000 older ones are recorded/ }).getByRole('link', { name: 'All of application_8_0001' }).waitFor();
    await page.getByLabel('Only with').fill('');
    await tell.end();
  });

  await step('routes of a link that is down add up, or it is said why not; it is reached as a failed link', async () => {
    const found = await document_(page);
    const carried = (id, routes) => ({ application_id: id, routes, routes_whole: 0, routes_cut: 0 });
    found.network.links.find((link) => link.id === down.id).carried = { routes: 34, routes_uncertain: 0, routes_chained: 0, applications: [carried('application_7_0001', 34), carried('application_7_0002', 24)], applications_total: 2 };
    const tell = await instead(page);
    tell(found);
    await page.reload();
    await at(page, 'network/failed');
    await see(page, '1 link is down');
    assert.deepEqual(await page.locator('section[aria-labelledby=links] tbody th').allInnerTexts(), [down.id]);
    await at(page, 'network/' + down.id);
    await see(page, /34 routes of 2 applications/);
    await see(page, 'one that several applications use stands in the row of each');
    // What it carried before: one look at its counters, and the mean of what the hour has of it.
    const link = found.network.links.find((one) => one.id === down.id);
    link.load_before = { a_to_b_bits_per_s: 0.15 * link.bits_per_s, b_to_a_bits_per_s: 0, before_ms: 2000 };
    tell(found);
    await page.route('**/api/history*', async (route) => {
      const answer = await route.fetch();
      const json = hour(await answer.json(), found.at_ms);
      const of = (load) => json.at_ms.map((_, at) => (at >= 350 || at < 346 ? null : load));
      await route.fulfill({ response: answer, json: { ...json, link: [of(400), of(50)], down: json.at_ms.map((_, at) => at >= 350) } });
    });
    await page.reload();
    await see(page, `(15 %) ${down.a} → ${down.b}, measured once, 2 s before it went down; mean of 40 s before: 40 % ${down.a} → ${down.b}, 5 % ${down.b} → ${down.a}`);
    await page.unroute('**/api/history*');
    await tell.end();
  });

  await step('what was not followed is found from its count; what was followed is folded; no share looks whole that is not', async () => {
    const found = await document_(page);
    const [first] = found.decisions.filter((row) => row.mode === 'on' && !row.refused);
    const row = (at, application, on_host, reason = '') => ({ ...first, decision_id: 'feedfacefeedfacefeedface' + String(10000000 + at), application_id: application, attempt: 1, at_ms: first.at_ms - at * 1000, hinted: 4, expected_gain: at ? 1 : 0.99996, without_room: 0, withheld: null, late: null,
      groups: [{ name: 'map', count: 4 }], followed: { on_host, hinted: 4, awaited: 0, settled: true, reason, in_rack: 4 - on_host } });
    const [whole, partly] = ['application_9_0001', 'application_9_0002'];
    found.decisions = [row(0, whole, 4), row(1, whole, 4), row(2, partly, 3, 'yarn_chose'), row(3, whole, 4), row(4, partly, 4), row(5, whole, 4)];
    found.applications = [];
    found.applications_total = 0;
    found.at_ms = first.at_ms + 1000;
    found.status.adherence = [{ policy: 'container', queue: first.queue, mode: 'on', decisions: 6, on_host: 29999, in_rack: 1, elsewhere: 0, never: 0, terms: {} }];
    const tell = await instead(page);
    tell(found);
    await go(page, 'Decisions');
    await page.reload();
    const rows = page.locator('main table tbody tr');
    const fold = page.getByRole('button', { name: '4 decisions, all followed' });
    await fold.waitFor();
    assert.equal(await rows.count(), 3);
    assert.match((await rows.first().innerText()).replace(/\s+/g, ' '), /16 × map .* 16 16\/16 >99.9 % to 100 %/);
    assert.match((await rows.nth(1).innerText()).replace(/\s+/g, ' '), /3\/4 yarn chose/);
    assert.equal(await fold.getAttribute('aria-expanded'), 'false');
    await fold.press('Enter');
    await until(async () => (await rows.count()) === 7);
    assert.equal(await fold.getAttribute('aria-expanded'), 'true');
    assert.equal(await fold.evaluate((one) => one === document.activeElement), true, 'the reader goes on there');
    await readable(page);
    await picture(page, 'folded-light');
    await fold.press('Enter');
    await until(async () => (await rows.count()) === 3);
    // A long list begins with 50 rows; who asks for the rest goes on in it.
    const few = found.decisions;
    found.decisions = Array.from({ length: 60 }, (_, at) => row(at, partly, 3, 'yarn_chose'));
    tell(found);
    await until(async () => (await rows.count()) === 50);
    await page.getByRole('button', { name: 'Show all 60 rows' }).press('Enter');
    await until(async () => (await rows.count()) === 60);
    assert.equal(await page.evaluate(() => document.activeElement.matches('.scroll')), true, 'in the table');
    // Long ids, counts and reasons fit into a common screen.
    found.decisions = [{ ...row(0, 'application_1795909808165_0004', 3, 'node_not_running'), decision_id: '00'.repeat(16), followed: { on_host: 1205, hinted: 1300, awaited: 95, settled: false, reason: 'node_not_running', in_rack: 0 }, hinted: 1300, groups: [{ name: 'reduce', count: 1300 }], without_room: 12 },
      ...[1, 2, 3].map((at) => ({ ...row(at, whole, 4), expected_gain: at / 100 })), { ...row(4, partly, 0), hinted: 0, withheld: { reason: 'unknown_network' } }];
    tell(found);
    await see(page, 'node not running');
    await page.setViewportSize({ width: 1400, height: 900 });
    assert.deepEqual(await cut(page), [], 'the last column is seen');
    await page.setViewportSize({ width: 1280, height: 900 });
    found.decisions = few;
    tell(found);
    await until(async () => (await rows.count()) === 3);
    // From the counts to what is behind them.
    await go(page, 'Overview');
    await see(page, '29999 of 30000 (>99.9 %)');
    await page.getByRole('link', { name: '1 not followed' }).press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Decisions' }).waitFor();
    await until(async () => (await rows.count()) === 1);
    assert.match(await rows.innerText(), /application_9_0002/);
    assert.equal(await page.evaluate(() => location.hash), '#/decisions');
    assert.equal(await page.getByLabel('Only decisions with containers that were not followed').isChecked(), true);
    await go(page, 'Applications');
    await until(async () => (await rows.count()) === 1);
    await page.getByRole('row', { name: /^application_9_0002 .* 7\/8/ }).waitFor();
    await page.getByLabel('Only applications with containers that were not followed').uncheck();
    await until(async () => (await rows.count()) === 2);
    await go(page, 'Queues and policies');
    await page.getByRole('link', { name: `Which decisions of queue ${first.queue} were not followed` }).press('Enter');
    await until(async () => (await rows.count()) === 1);
    assert.equal(await page.getByLabel('Only with').inputValue(), first.queue);
    await page.getByLabel('Only with').fill('');
    await page.getByLabel('Only decisions with containers that were not followed').uncheck();
    await tell.end();
  });

  await step('why there: by rack and in a sentence, by the time that was sought and not by what differs most; times have one form', async () => {
    await go(page, 'Decisions');
    const link = (from, to, seconds) => ({ from, to, seconds, links: [`${from}--${to}`], links_total: 1 });
    await page.route('**/api/explain*', async (route) => {
      const answer = await route.fetch();
      const explained = await answer.json();
      const [cost, baseline] = [{ objective: 7.6, 'part.busiest_link_s': 7.6, balance: 0.5, worst_link_s: 7.9e-7, remote_bytes: 0, cross_rack_bytes: 1e9 }, { objective: 28.9, 'part.busiest_link_s': 28.9, balance: 0.51, worst_link_s: 8.2e-7, remote_bytes: 1e6, cross_rack_bytes: 1.1e9 }];
      await route.fulfill({ response: answer, json: { ...explained, cost, baseline, expected_gain: 0.737, degraded: ['no_latency'], links: { busiest: link('edge-02', 'core-2', 7.6) }, baseline_links: { busiest: link('core-2', 'edge-01', 28.9) } } });
    });
    await page.locator('tbody tr', { hasText: 'hinted' }).first().getByRole('link').first().press('Enter');
    await see(page, 'the busiest link core-2 → edge-01 would be done in 28.9 s; here the busiest edge-02 → core-2 is done in 7.6 s');
    const text = await page.locator('section.panel').innerText();
    assert.ok(text.indexOf('Where it is hinted, by rack') < text.indexOf('Why there') && text.includes('Where it is hinted, by rack'));
    assert.match(text, /Time on the busiest link saved \(expected\)\s+73.7 %: 7.6 s in place of 28.9 s/);
    assert.match(text, /Cross-rack bytes saved \(expected\)\s+9.09 %: 1 GB in place of 1.1 GB/);
    assert.match(text, /Not known\s+latency/);
    assert.match(text, /<1 µs/);
    assert.doesNotMatch(text, /\d\.\de[-+]\d/, 'no exponents');
    await page.locator('section.panel summary', { hasText: 'What these words mean' }).click();
    await page.locator('dt', { hasText: 'core hops' }).waitFor();
    await page.unroute('**/api/explain*');
    await page.keyboard.press('Escape');
  });

  await step('a feed that tells changes only is not said to be fresh', async () => {
    const found = await document_(page);
    Object.assign(found.status.ages.find((age) => age.source === 'blocks'), { age_ms: 1_500_000, stale: false });
    const tell = await instead(page);
    tell(found);
    await page.reload();
    await go(page, 'Servers');
    await page.getByRole('row', { name: /^blocks 25 min ago in force: it tells changes only/ }).waitFor();
    await tell.end();
  });
}
