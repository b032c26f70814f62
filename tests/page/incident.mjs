// What an operator does who has only the page while a link is down: finds it, and is not misled by what is old. Steps of the
// suite's first daemon, whose link edge-01 to core-1 is down.
import assert from 'node:assert/strict';

const HOSTS = 8;
const rows = (page) => page.locator('section[aria-labelledby=links] tbody tr');
const names = (page) => rows(page).locator('th').allInnerTexts();
const focused = (page) => page.evaluate(() => document.activeElement.textContent);

export async function links({ page, step, go, see, readable, until, down }) {
  await step('links of hosts and switches in a table: narrowed, sorted, none without saying so', async () => {
    await go(page, 'Network');
    await see(page, '50 of all 50 links shown (10 join switches, 40 lead to hosts)');
    assert.equal((await names(page))[0], down.id, 'what is down is first');
    const filter = page.getByLabel('Only of host, switch or rack');
    await filter.fill('edge-01');
    await until(async () => (await rows(page).count()) === HOSTS + 2);
    await filter.fill('node-01-3');
    await until(async () => (await rows(page).count()) === 1);
    await filter.fill('nobody');
    await see(page, 'nothing matches “nobody”');
    await page.locator('section[aria-labelledby=links] .empty').getByRole('button', { name: 'Clear the filter' }).press('Enter');
    await until(async () => (await rows(page).count()) === 50);
    assert.equal(await page.evaluate(() => document.activeElement.id), 'of', 'the reader goes on at the filter');
    const head = page.getByRole('columnheader', { name: 'Link' });
    assert.equal(await head.getAttribute('aria-sort'), 'none');
    for (const [way, first] of [['ascending', 'edge-01--core-1'], ['descending', 'node-05-8--edge-05'], ['none', down.id]]) {
      await head.hover(); // rows under the pointer stand still, but not for who sorts them
      await head.getByRole('button').press('Enter');
      await until(async () => (await head.getAttribute('aria-sort')) === way && (await names(page))[0] === first);
      assert.equal(await head.getByRole('button').evaluate((button) => button === document.activeElement), true, 'sorting keeps the focus');
    }
    await readable(page);
  });

  await step('a link that is down has no load', async () => {
    const row = rows(page).filter({ hasText: 'DOWN' });
    assert.equal(await row.count(), 1);
    assert.equal(await row.locator('.bar').count(), 0);
    await row.getByRole('link').first().press('Enter');
    await page.getByRole('heading', { name: `Link ${down.id}` }).waitFor();
    const facts = await page.locator('section.panel dl').innerText();
    assert.match(facts, new RegExp(`DOWN[\\s\\S]*${down.a} → ${down.b}\\s+nothing: it is down\\s+${down.b} → ${down.a}\\s+nothing: it is down`));
    assert.doesNotMatch(facts.replace(/Load before it went down\s+[^\n]*/, ''), /%/, 'but for what it carried before');
    assert.match(facts, /DOWN for [^\n]*, since \d\d:\d\d:\d\d, as /);
    const told = await page.locator('.map g[role=link]').evaluateAll((parts) => parts.map((part) => part.getAttribute('aria-label')));
    assert.deepEqual(told.filter((text) => text.includes('DOWN')).map((text) => text.includes('%')), [false]);
  });

  await step('what is opened far down a table is come to; Esc, and Close at its head, lead back to its row', async () => {
    const opens = async (view, close, heading) => {
      await go(page, view);
      const link = page.locator('main table').last().locator('tbody tr').last().getByRole('link').first();
      const href = await link.getAttribute('href');
      await link.press('Enter');
      await until(() => page.evaluate(() => {
        const { top } = document.activeElement.getBoundingClientRect();
        return document.activeElement.matches('section.panel h2') && top >= 0 && top < innerHeight / 2;
      }));
      assert.match(await focused(page), heading);
      await close();
      await until(async () => (await page.locator('section.panel').count()) === 0);
      assert.equal(await page.evaluate(() => document.activeElement.getAttribute('href')), href, 'the reader goes on at the row');
    };
    const byEsc = () => page.keyboard.press('Escape');
    const byClose = () => page.locator('section.panel > .close a').press('Enter');
    await opens('Network', byEsc, /^Link /);
    await opens('Network', byClose, /^Link /);
    await opens('Nodes', byEsc, /^Rack /);
    await opens('Applications', byEsc, /^application_/);
    await opens('Decisions', byClose, /^Decision /);
    await opens('Alerts', byEsc, /^Hintd/);
    await go(page, 'Network');
  });

  await step('what is opened from another view is come to, too; Esc leads back there, step by step, as far down as it was', async () => {
    await page.setViewportSize({ width: 1280, height: 500 });
    const found = await document_(page);
    const tell = await instead(page); // loads stand still, and rows with them
    tell(found);
    await page.reload();
    await go(page, 'Overview');
    const table = page.locator('main table', { has: page.locator('caption', { hasText: 'Busiest now' }) });
    const link = table.locator('tbody tr').last().getByRole('link').first();
    const id = await link.innerText();
    await link.focus();
    const before = await page.evaluate(() => scrollY);
    assert.ok(before > 0, 'the overview is scrolled');
    await page.keyboard.press('Enter');
    const come = (heading) => until(() => page.evaluate((begins) => {
      const { activeElement: at } = document;
      const { top } = at.getBoundingClientRect();
      return at.matches('section.panel h2') && at.textContent.startsWith(begins) && top >= 0 && top < innerHeight / 2;
    }, heading));
    await come('Link ' + id);
    await page.locator('section.panel > .close').getByRole('link', { name: 'Back to Overview' }).waitFor();
    // From a host behind it on to its rack, and all the way back.
    const rack = page.locator('section.panel table', { has: page.locator('caption', { hasText: 'Busiest hosts behind it' }) }).locator('tbody tr').first().getByRole('link').first();
    await rack.press('Enter');
    await come('Rack ');
    await page.keyboard.press('Escape');
    await page.getByRole('heading', { name: 'Link ' + id }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    await until(() => page.evaluate((to) => document.activeElement.getAttribute('href') === '#/network/' + to, id));
    assert.ok(Math.abs((await page.evaluate(() => scrollY)) - before) < 60, 'as far down as it was');
    await page.setViewportSize({ width: 1280, height: 900 });
    await tell.end();
    await go(page, 'Network');
  });

  await step('a row keeps the focus when it moves; where it goes the focus is at the view', async () => {
    const found = await document_(page);
    const up = found.network.links.filter((link) => link.up);
    const loaded = (order) => order.forEach((link, at) => { link.a_to_b_bits_per_s = link.b_to_a_bits_per_s = (order.length - at) * 1e8; });
    const tell = await instead(page);
    loaded(up);
    tell(found);
    await page.mouse.move(2, 2); // rows under the pointer stand still
    await page.reload();
    await until(async () => (await names(page)).slice(1, 10).join() === up.map((link) => link.id).join());
    const { id } = up[2];
    await rows(page).filter({ hasText: id }).getByRole('link').focus();
    loaded([...up].reverse());
    tell(found);
    await until(async () => (await names(page)).indexOf(id) === up.length - 2);
    assert.equal(await focused(page), id);
    found.network.links = found.network.links.filter((link) => link.id !== id);
    tell(found);
    await until(async () => !(await names(page)).includes(id));
    assert.equal(await page.evaluate(() => document.activeElement.id), 'view');
    await tell.end();
  });

  await step('the map by keys', async () => {
    await page.locator('.map [tabindex="0"]').first().focus();
    assert.equal(await page.locator('.map svg [tabindex="0"]').count(), 1, 'one stop for the tab key');
    const at = () => page.evaluate(() => document.activeElement.dataset.part);
    assert.equal(await at(), 'switch core-1');
    await page.keyboard.press('ArrowRight');
    assert.equal(await at(), 'switch core-2');
    await page.keyboard.press('Enter');
    await until(async () => (await rows(page).count()) === 5 && (await page.getByLabel('Only of host').inputValue()) === 'core-2');
    await page.getByLabel('Only of host').fill('');
    await page.locator('.map svg [tabindex="0"]').focus();
    await page.keyboard.press('End');
    assert.equal(await at(), 'link edge-05--core-2');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Link edge-05--core-2' }).waitFor();
  });

  await step('which way traffic goes is drawn; the hosts behind a link, and the way to their rack', async () => {
    const part = (id) => page.locator(`.map [data-part="link ${id}"]`);
    // Nine links are up.
    await until(async () => (await page.locator('.map path.arrow').count()) === 18);
    // It is told by its ends, a below b: up, then down; each is to the right of where it goes.
    const arrows = await part('edge-05--core-2').locator('path.arrow').evaluateAll((all) => all.map((one) => one.getAttribute('transform').match(/[-\d.]+/g).map(Number)));
    const [[upX, , upwards], [downX, , downwards]] = arrows;
    assert.ok(upwards < 0 && upwards > -180 && Math.abs(downwards - upwards) === 180, `${arrows}`);
    const lines = await part('edge-05--core-2').locator('line.link').evaluateAll((all) => all.map((one) => Number(one.getAttribute('x1'))));
    assert.ok(lines[0] > lines[1] && Number.isFinite(upX + downX), 'upwards is on the right');
    const hosts = page.locator('section.panel table', { has: page.locator('caption', { hasText: 'Busiest hosts behind it' }) });
    await until(async () => (await hosts.locator('tbody tr').count()) === HOSTS);
    assert.deepEqual((await hosts.locator('tbody th').allInnerTexts()).map((name) => name.slice(0, 7)), Array(HOSTS).fill('node-05'));
    assert.equal(await hosts.locator('tbody tr').first().getByRole('link').first().getAttribute('href'), '#/nodes/%2Frack-05');
    // By what they receive, for the link is busier downwards; two receive and one sends more.
    const found = await document_(page);
    const busy = found.network.links.find((link) => link.id === 'edge-05--core-2');
    Object.assign(busy, { a_to_b_bits_per_s: 1e8, b_to_a_bits_per_s: 7e8 });
    const tell = await instead(page);
    tell(found);
    await page.route('**/api/nodes*', async (route) => {
      const answer = await route.fetch();
      const json = await answer.json();
      const loads = { 'node-05-3': [0, 9e8], 'node-05-6': [2e8, 5e8], 'node-05-2': [9e8, 0] };
      for (const { host, link } of json.nodes) {
        const [out, into] = loads[host] ?? [0, 0];
        Object.assign(link, link.a === host ? { a_to_b_bits_per_s: out, b_to_a_bits_per_s: into } : { a_to_b_bits_per_s: into, b_to_a_bits_per_s: out });
      }
      await route.fulfill({ response: answer, json });
    });
    await page.reload();
    await see(page, 'core-2 → edge-05 is the busier way, so first by what they receive (below edge-05)');
    await until(async () => (await hosts.locator('tbody th').allInnerTexts()).slice(0, 2).join() === 'node-05-3,node-05-6');
    assert.match(await hosts.locator('tbody tr').first().innerText(), /0 %\s+90 %/);
    await page.unroute('**/api/nodes*');
    await tell.end();
  });
}

/** The document of now. */
export const document_ = (page) => page.evaluate(() => new Promise((done) => {
  const source = new EventSource('/page/api/stream');
  source.onmessage = (event) => { source.close(); done(JSON.parse(event.data)); };
}));

/** From now on the page hears what the function is told, in place of the daemon; until its `end`. */
export async function instead(page) {
  let said = '';
  await page.route('**/api/stream', (route) => route.fulfill({ contentType: 'text/event-stream', body: `retry: 200\n\ndata: ${said}\n\n` }));
  const tell = (document) => { said = JSON.stringify(document); };
  tell.end = async () => {
    await page.unroute('**/api/stream');
    await page.reload();
  };
  return tell;
}

/** What a daemon says whose counters are old and which knows since when a link is down. */
export async function old({ page, step, go, see, until, down }) {
  await step('what is old looks old, and a link that is down says since when', async () => {
    const late = await document_(page);
    late.status.ages.find((age) => age.source === 'link_stats').age_ms = 90_000;
    late.network.links.filter((link) => link.load_source === 'measured').forEach((link) => { link.load_age_ms = 90_000; });
    Object.assign(late.network.links.find((link) => link.id === down.id), { down_ms: 187_000, down_at_ms: 0, down_by: 'ryu' });
    late.attention = [{ name: 'links', verdict: 'warning', finding: `1 link of 50 is down: ${down.id} for 187 s (as ryu said).`, advice: 'Repair it.', page: '' }];
    late.racks.forEach((rack) => { rack.oldest_ms = 42_000; });
    const tell = await instead(page);
    tell(late);
    await page.reload();
    await go(page, 'Network');
    await page.locator('.bar.old', { hasText: /%, 9\d s old/ }).first().waitFor();
    await page.locator('.map line.link.old').first().waitFor({ state: 'attached' });
    await rows(page).filter({ hasText: 'DOWN for 3 min, as ryu said' }).waitFor();
    await go(page, 'Nodes');
    await page.locator('.bar.old', { hasText: /%, 4\d s old/ }).first().waitFor();
    await go(page, 'Overview');
    await see(page, /WARNING 1 link of 50 is down: edge-01--core-1 for 187 s \(as ryu said\). Repair it/);
    await see(page, /A load older than 15 s is faded/);
    await tell.end();
    await go(page, 'Nodes');
    await until(async () => (await page.locator('.bar').count()) > 0 && (await page.locator('.bar.old').count()) === 0);
  });
}

export async function decisions({ page, step, go, see, until }) {
  await step('ids of decisions differ, are whole on focus, and are copied whole', async () => {
    await go(page, 'Decisions');
    const link = page.locator('tbody .id a');
    const ids = await link.evaluateAll((all) => all.map((one) => [one.title, one.querySelector('code').firstChild.data + one.querySelector('code').lastChild.data]));
    assert.equal(new Set(ids.map(([, shown]) => shown)).size, ids.length);
    const wide = () => link.first().evaluate((one) => one.getBoundingClientRect().width);
    const short = await wide();
    await page.keyboard.press('Tab');
    await link.first().focus();
    const focusedWide = await page.evaluate(() => document.activeElement.getBoundingClientRect().width);
    assert.ok(focusedWide > short, 'all of it is seen on focus'); // a newer decision may be the first by now
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const id = await link.first().getAttribute('title');
    await page.getByRole('button', { name: `Copy ${id}` }).press('Enter');
    await page.getByRole('button', { name: `Copied ${id}` }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), id);
  });

  await step('a filter that matches no decision says so', async () => {
    await page.getByLabel('Only with').fill('no such thing');
    await see(page, 'nothing matches “no such thing”');
    await page.locator('.empty').getByRole('button', { name: 'Clear the filter' }).press('Enter');
    await until(async () => (await page.locator('tbody tr').count()) > 0 && (await page.getByLabel('Only with').inputValue()) === '');
  });

  await step('capacity has no scores, and says so; what became of a decision is remembered', async () => {
    await page.locator('tbody tr', { hasText: 'hinted' }).first().getByRole('link').first().press('Enter');
    await page.locator('section.panel select').selectOption('capacity');
    await page.getByRole('button', { name: 'Replay' }).press('Enter');
    await see(page, /capacity has no objective: it takes hosts in the order of heartbeats/);
    await until(async () => !(await page.getByText('What became of it is not kept').count()));
    await page.route('**/api/explain*', async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...(await answer.json()), outcome: undefined } });
    });
    await see(page, /As this page saw it last, at \d\d:\d\d:\d\d/);
    await page.unroute('**/api/explain*');
  });
}

/** The narrowest phone: no view is wider than it, whatever is open. */
export async function phone({ page, addresses }) {
  await page.setViewportSize({ width: 360, height: 780 });
  for (const address of addresses) {
    await page.evaluate((to) => { location.hash = to; }, address);
    await page.locator('main table, main .empty').first().waitFor();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `${address} is ${wide} pixels too wide`);
    const tab = await page.evaluate(() => {
      const { left, right } = document.querySelector('nav [aria-current]').getBoundingClientRect();
      return left >= -1 && right <= innerWidth + 1;
    });
    assert.ok(tab, `${address}: its tab is in sight`);
    const map = await page.locator('.map').evaluateAll((all) => all.map((one) => one.scrollWidth - one.clientWidth));
    assert.ok(map.every((by) => by <= 0), `${address}: the map is ${map} pixels too wide`);
    const out = await page.evaluate(() => [...document.querySelectorAll('main *')].filter((one) => !one.closest('.scroll') && one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 80)));
    assert.deepEqual(out, [], `${address}: cut off`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}
