// The page in Chromium, step by step. A step waits for what is to be seen, for at most PATIENCE; nothing is timed.
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Daemon } from './daemon.mjs';
import { answers } from './answers.mjs';
import { HIDDEN, MARKUP } from './hybrid.mjs';
import { decisions, links, old, phone } from './incident.mjs';
import { ownViews } from './views.mjs';

const { CHROMIUM, PLAYWRIGHT, SCREENSHOTS } = process.env;
const { chromium } = await import(PLAYWRIGHT);
const PATIENCE = 90_000;
/** Longer than steps take on a busy machine: what is emulated ends when they are through. Pictures want more jobs at one time. */
const EMULATED = SCREENSHOTS ? '150' : '300';

/** It takes about a minute and a half; beyond this somebody should look why. A warning, for how long it takes is the machine's load as well. */
const SLOW_S = 240;

const began = Date.now();
const problems = [];
let browser;
let daemon;

async function step(name, work) {
  await work();
  console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(6)} s  ${name}`);
}

/** A tab that notes whatever a page of ours must not do. */
async function tab(context, of = daemon) {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const origin = `http://127.0.0.1:${of.http}`;
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  page.on('console', (message) => {
    // That the daemon is gone for a while, and a session with it, is a step of this suite.
    if (message.type() === 'error' && !/net::ERR|status of (401|503)/.test(message.text())) problems.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => { if (!request.url().startsWith(origin)) problems.push(`asks ${request.url()}`); });
  return page;
}

/** Asks until it is so. */
async function until(so) {
  for (const end = Date.now() + PATIENCE; !(await so());) {
    if (Date.now() > end) throw new Error(`not so within ${PATIENCE / 1000} s: ${so}`);
    await new Promise((done) => setTimeout(done, 200));
  }
}

const open = async (page) => page.goto(await daemon.page());
const see = (page, text) => page.getByText(text).first().waitFor();
const go = async (page, view) => {
  await page.getByRole('navigation').getByRole('link', { name: view, exact: true }).click();
  await page.getByRole('heading', { level: 1, name: view, exact: true }).waitFor();
};

/** What a screen reader goes by: one heading of the first level, landmarks, tables with captions and heads, links with names. */
async function readable(page) {
  const found = await page.evaluate(() => {
    const all = (selector) => [...document.querySelectorAll(selector)];
    return [
      all('h1').length !== 1 && `${all('h1').length} h1`,
      ...['header', 'nav', 'main', 'footer'].map((name) => all(name).length !== 1 && `no single ${name}`),
      ...all('table:not(.u-legend)').map((table) => !table.caption?.textContent && 'a table without a caption'),
      ...all('table:not(.u-legend) th').map((head) => !head.scope && `a th without a scope: ${head.textContent}`),
      ...all('a, button').map((link) => !link.textContent.trim() && 'a link without a name'),
      ...all('svg').map((svg) => !svg.getAttribute('aria-label') && !svg.closest('[aria-hidden], [aria-label]') && svg.getAttribute('aria-hidden') !== 'true' && 'an svg without a label'),
      ...all('[style*="url"], script:not([src]), style').map((element) => element.tagName + ' inline'),
      document.documentElement.lang !== 'en' && 'no language',
    ].filter(Boolean);
  });
  assert.deepEqual(found, [], page.url());
}

async function picture(page, name) {
  if (!SCREENSHOTS) return;
  await mkdir(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
}

/** Those of docs/page.md, besides what the steps take. */
async function pictures(page) {
  for (const [name, scheme, width, height, view] of [
    ['network-dark', 'dark', 1280, 880, 'network'], ['network-phone', 'light', 390, 844, 'network'],
    ['overview-phone', 'light', 390, 844, 'overview'], ['overview-light', 'light', 1280, 960, 'overview'],
  ]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height });
    await page.evaluate((to) => { location.hash = '#/' + to; }, view);
    if (view === 'overview') await page.locator('.chart').nth(1).waitFor();
    await page.waitForTimeout(1500);
    await page.evaluate(() => {
      document.querySelector('nav ul').scrollTo(0, 0);
      scrollTo(0, 0);
    });
    await picture(page, name);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 900 });
}

async function run() {
  daemon = await Daemon.start();
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await tab(context);
  let url;

  await step('an address opens the page once', async () => {
    url = await daemon.page();
    await page.goto(url);
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    assert.equal(new URL(page.url()).search, '', 'the key is gone from the address');
    const stranger = await browser.newContext();
    const second = await stranger.newPage();
    assert.equal((await second.goto(url)).status(), 401);
    await see(second, 'This browser has no session');
    assert.equal(await page.evaluate(() => document.cookie), '', 'no script sees the session');
    await stranger.close();
  });

  await step('a daemon without nodes says so', () => see(page, /NOT READY: no node is RUNNING/));

  let emulation = daemon.emulate('--seconds', EMULATED, '--fail-link-at', '1');
  await step('nodes, applications and rates come by themselves', async () => {
    await page.locator('#state', { hasText: /^ready/ }).waitFor();
    await see(page, '40 of 40 in 5 racks');
    await readable(page);
  });

  await step('the daemon knows that a link is down', () => until(async () => (await daemon.ctl('links', '--down')).links.length === 1));

  await step('the network: tiers, both directions, a link that fails', async () => {
    await go(page, 'Network');
    await page.locator('svg .switch').nth(6).waitFor();
    assert.equal(await page.locator('.map svg .switch').count(), 7);
    assert.equal(await page.locator('.map svg g > line.link').count(), 20, 'ten links, a line each way');
    await page.locator('.map line.link.down').first().waitFor({ state: 'attached' });
    const down = page.locator('tbody tr', { hasText: 'DOWN' }).first();
    await down.waitFor();
    await down.getByRole('link').first().click();
    await page.getByRole('heading', { name: /^Link / }).waitFor();
    await see(page, /Whose routes went over it when it went down/);
    await readable(page);
    if (SCREENSHOTS) await page.locator('.chart').first().waitFor();
    await picture(page, 'link-down-light');
  });

  await step('the overview says that a link is down', async () => {
    await go(page, 'Overview');
    await see(page, /WARNING 1 link of \d+ is down: .* for .* s/);
  });

  const [down] = (await daemon.ctl('links', '--down')).links;
  await links({ page, step, go, see, readable, until, down });
  await old({ page, step, go, see, until, down });

  await step('racks, and nodes of one', async () => {
    await go(page, 'Nodes');
    await page.getByRole('row', { name: /rack/ }).getByRole('link').first().click();
    await page.getByRole('heading', { name: /^Rack / }).waitFor();
    await page.locator('section.panel tbody tr').nth(7).waitFor();
    assert.equal(await page.locator('section.panel tbody tr').count(), 8);
    await readable(page);
  });

  await step('decisions, one explained, its application', async () => {
    await go(page, 'Decisions');
    await page.locator('tbody tr', { hasText: 'hinted' }).first().getByRole('link').first().click();
    await page.getByText('Cost terms: hints, and').waitFor();
    assert.ok(await page.locator('.terms tbody tr').count() > 1);
    await see(page, 'Hints, and whether they were followed');
    await page.getByText('Where YARN would put them by itself, as estimated').first().waitFor();
    await readable(page);
    await picture(page, 'decision-light');
    // Another policy beside the one that decided, chosen and asked for by keys alone.
    assert.equal(await page.locator('section.panel select').inputValue(), 'joint', 'one that hints is chosen');
    await page.locator('section.panel select').selectOption('spread');
    await page.getByRole('button', { name: 'Replay' }).press('Enter');
    await see(page, 'Made again by container, which decided it, it comes out the same, byte by byte.');
    await page.getByText('Cost terms of container and spread').waitFor();
    await page.getByRole('row', { name: /^container [\d.]/ }).waitFor();
    await readable(page);
    await picture(page, 'replay-light');
    await page.locator('section.panel dl').getByRole('link').first().click();
    await page.getByRole('heading', { name: /^application_/ }).waitFor();
    await see(page, /Its decisions/);
    await readable(page);
  });

  await answers({ page, step, go, see, readable, until, picture, down });
  await decisions({ page, step, go, see, until });

  await step('decisions are found by what is typed', async () => {
    await go(page, 'Decisions');
    await page.getByLabel('Only with').fill('no such thing');
    await see(page, /0 of the latest \d+ decisions/);
    await page.getByLabel('Only with').fill('');
  });

  await step('the keyboard gets everywhere', async () => {
    await go(page, 'Overview');
    await page.reload();
    await page.locator('#state', { hasText: /^ready/ }).waitFor();
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the view');
    await page.keyboard.press('Tab');
    // A link that is down for two minutes is an alert, whose count stands before the views.
    if (await page.evaluate(() => document.activeElement.id === 'firing')) await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Network');
    assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), 'none');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Network' }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.id), 'view', 'the reader is at the view');
  });

  await step('names with markup are texts', async () => {
    const request = { format: 'hintd.request/1', id: MARKUP, application_id: 'application_7_0007', attempt: 1, user: MARKUP, groups: [{ name: MARKUP, count: 1, size: { memory_mb: 1024, vcores: 1 } }] };
    const file = join(daemon.folder, 'request.json');
    await writeFile(file, JSON.stringify(request));
    await daemon.ctl('request', '-f', file);
    await go(page, 'Decisions');
    await see(page, `1 × ${MARKUP}`);
    await page.getByRole('row', { name: /application_7_0007/ }).getByRole('link').first().click();
    await see(page, MARKUP);
    assert.equal(await page.locator('img').count(), 0);
    assert.notEqual(await page.title(), '1');
    // Control characters are in no name, so that none comes here.
    for (const of of ['user', 'queue', 'id']) {
      await writeFile(file, JSON.stringify({ ...request, [of]: `hidden${HIDDEN}` }));
      await assert.rejects(daemon.ctl('request', '-f', file), new RegExp(of === 'id' ? 'request_id|id' : of));
    }
    await go(page, 'Decisions');
    await page.getByRole('row', { name: /application_7_0007/ }).first().waitFor();
    const shown = await page.locator('body').innerText();
    assert.equal([...HIDDEN].some((letter) => shown.includes(letter)), false);
  });

  await step('what the overview counts as refused is found among the decisions, or said to have left no record', async () => {
    const { refused } = await daemon.ctl('decisions');
    const all = refused.reduce((sum, row) => sum + row.requests, 0);
    assert.ok(all > 0, 'names with control characters were refused');
    await go(page, 'Overview');
    await see(page, new RegExp(`/s, ${all} since the start: \\d+ recorded`));
    await page.getByRole('link', { name: /^\d+ recorded$/ }).press('Enter');
    await see(page, `${all} requests were refused since the start`);
    assert.equal(await page.getByLabel('Only with').inputValue(), 'refused');
    await page.getByLabel('Only with').fill('');
    await page.getByRole('columnheader', { name: 'Followed' }).waitFor();
    // Rows say how many were followed.
    await page.getByRole('cell', { name: /^\d+\/\d+/ }).first().waitFor();
  });

  await step('queues, policies and the configuration', async () => {
    await go(page, 'Queues and policies');
    await see(page, 'container (default)');
    await page.getByRole('columnheader', { name: 'Potential saving' }).waitFor();
    await page.getByRole('cell', { name: /^>?\d[\d.]* %, ?[\d.]+ [kMGT]?B of [\d.]+ [kMGT]?B$/ }).first().waitFor();
    await page.getByRole('cell', { name: /^\d+ of \d+ \(>?[\d.]+ %\)$/ }).first().waitFor();
    // Decisions settle when their containers have been seen; a point comes every 10 s.
    await page.getByRole('img', { name: /^Saved: cross-rack bytes, last: expected .* %, actual .* %$/ }).waitFor();
    assert.doesNotMatch(await page.locator('section[aria-labelledby=policies]').innerText(), /paper|baseline|\b00\d\b|§/, 'policies are told by what they do');
    await picture(page, 'gain-light');
    await readable(page);
    await go(page, 'Configuration');
    await see(page, 'no change since the start');
    await see(page, `${daemon.folder}/hintd.toml`);
    const onDisk = page.locator('dt', { hasText: 'The file on disk' }).locator('xpath=following-sibling::dd[1]');
    const inForce = async (words) => until(async () => (await onDisk.innerText()) === words);
    await inForce('in force');
    await daemon.configure('[tracing]\nqueue = 100\n');
    await inForce('in force, but for what waits for a restart: tracing.queue');
    await daemon.configure();
    await inForce('in force');
    await readable(page);
  });

  await step('a refused configuration is said as long as it is on disk', async () => {
    await daemon.configure('[queues."*"]\nmode = "maybe"\n');
    await page.locator('#refused').waitFor();
    await see(page, /queues\.\*\.mode: "maybe" is none of/);
    await daemon.configure('[queues."*"]\nmode = "shadow"\n');
    await page.locator('#refused').waitFor({ state: 'detached' });
    await see(page, 'queues.*.mode');
    await go(page, 'Queues and policies');
    await page.getByRole('cell', { name: 'shadow' }).first().waitFor();
  });

  await step('the link is back', async () => {
    await go(page, 'Network');
    await page.locator('.map line.link.down').first().waitFor({ state: 'attached' });
    // Another controller tells the network anew, with all links up.
    await Daemon.end(emulation, 'SIGTERM');
    emulation = daemon.emulate('--seconds', EMULATED);
    await until(async () => (await daemon.ctl('links', '--down')).links.length === 0);
    await page.locator('.map line.link.down').first().waitFor({ state: 'detached' });
  });

  await step('a phone has all of it within its width', async () => {
    const [first] = (await daemon.ctl('decisions')).decisions;
    await phone({ page, addresses: ['overview', 'network', `network/${down.id}`, 'nodes', 'nodes/%2Frack-01', 'applications', `applications/${first.application_id}`,
      'decisions', `decisions/${first.decision_id}`, 'queues', 'plans', 'circuits', 'servers', 'alerts', 'alerts/HintdSlow', 'configuration'].map((name) => '#/' + name) });
  });

  if (SCREENSHOTS) await step('pictures', () => pictures(page));

  await step('a daemon that is gone, and another one', async () => {
    await go(page, 'Overview');
    await daemon.kill();
    await page.locator('#trouble', { hasText: 'No answer from the daemon' }).waitFor();
    await daemon.run();
    await page.locator('#trouble', { hasText: 'The session has ended' }).waitFor();
    const second = await tab(context);
    await open(second);
    await second.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    // The tab that was open goes on by the other's session.
    await see(page, 'The daemon was restarted while this page was open');
    await page.locator('#trouble').waitFor({ state: 'detached' });
  });

  await Daemon.end(emulation, 'SIGTERM');
  await ownViews({ browser, step, tab, see, go, readable, until, picture });
  assert.deepEqual(problems, [], 'what pages must not do');
}

// Stopped from outside it leaves nothing behind either.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => { browser?.close(); daemon?.stop().finally(() => process.exit(1)); });

try {
  await run();
  const took = (Date.now() - began) / 1000;
  console.log(`the page: all steps passed in ${took.toFixed(0)} s`);
  if (took > SLOW_S && !SCREENSHOTS) console.log(`the page: WARNING: ${took.toFixed(0)} s, more than ${SLOW_S}: a busy machine, or a step has become slow`);
} catch (error) {
  console.error(error);
  console.error('problems:', problems, '\nhintd said:', daemon?.program?.said.slice(-3000));
  for (const child of daemon?.children ?? []) if (child !== daemon.program) console.error(child.spawnargs.join(' '), 'said:', child.said);
  process.exitCode = 1;
} finally {
  await browser?.close();
  await daemon?.stop();
}
