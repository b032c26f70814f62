// Steps of views that the emulated cluster has nothing for: plans, circuits and chains, servers, alerts.
import assert from 'node:assert/strict';
import { Daemon } from './daemon.mjs';
import { Hybrid, KEY, MARKUP, historyServer } from './hybrid.mjs';
import { irregular } from './irregular.mjs';

/** Asked by the daemon: one server that answers, and two at ports where nobody listens. */
const servers = (port) => `[history_server]\nurls = ["http://127.0.0.1:${port}"]\n[name_node]\nurls = ["http://127.0.0.1:1"]\n[sdn.ryu]\nurl = "http://127.0.0.1:2"\n`;

/** All of it on a daemon of its own. The rest is the suite's. */
export async function ownViews({ browser, step, tab, see, go, readable, until, picture }) {
  const server = await historyServer();
  const daemon = await Daemon.start(servers(server.address().port));
  const hybrid = new Hybrid(daemon);
  try {
    await step('a cluster with an optical switch, chains and a plan in force', async () => {
      await hybrid.build();
      await hybrid.plan();
      const report = await hybrid.watch();
      await hybrid.run();
      assert.equal(hybrid.wanted.circuits.length, 1);
      hybrid.report = report;
    });
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    const page = await tab(context, daemon);
    await page.goto(await daemon.page());
    const title = await page.title();

    await step('plans: which are kept, one as a Gantt chart, its jobs against it', async () => {
      await go(page, 'Plans');
      await page.getByRole('row', { name: /^tonight active/ }).getByRole('link').click();
      await page.getByRole('heading', { name: 'Plan tonight' }).waitFor();
      // The heading stands while the daemon is still asked for the plan.
      await page.locator('.gantt rect.slice').first().waitFor();
      assert.equal(await page.locator('.gantt rect.slice').count(), 6, 'maps and reduces of three jobs');
      assert.equal(await page.locator('.gantt rect.slice.missed').count(), 2);
      await page.locator('.gantt rect.launched').first().waitFor({ state: 'attached' });
      const bars = (await page.locator('.gantt title').allTextContents()).filter((text) => text.includes('launched here'));
      assert.match(bars.sort().join(' '), /maps in .* 4 of 4 launched here .*reduces in .* 2 of 2 launched here/);
      assert.equal(await page.locator('.gantt .now').count(), 1);
      const row = page.locator('section.panel tbody tr');
      const ours = row.filter({ hasText: `${KEY} #0` });
      assert.match(await ours.innerText(), /running[\s\S]*4 of 4, 2 done[\s\S]*2 of 2[\s\S]*application_1_0001/);
      assert.match(await row.filter({ hasText: 'missed #0' }).innerText(), /missed[\s\S]*4 planned/);
      assert.match(await row.filter({ hasText: 'later #0' }).innerText(), /expected[\s\S]*2 planned/);
      await see(page, /1 running, 0 over, 1 expected, 1 missed; 3 of 3 by start/);
      await readable(page);
      await picture(page, 'plan-light');
    });

    await step('circuits and chains: wanted, then set; a dark port; a chain that can not be met', async () => {
      await go(page, 'Circuits and chains');
      await page.getByRole('row', { name: /port0.*port2.*wanted, not set/ }).waitFor();
      assert.equal(await page.locator('.circuit.wanted').count(), 2, 'the circuit, and the legend');
      await page.getByRole('row', { name: /^port1/ }).getByText(`no light ${MARKUP}`).waitFor();
      assert.equal(await page.locator('.port.bad').count(), 2, 'it goes in and out');
      const cut = await page.locator('.port text').evaluateAll((labels) => labels.filter((label) => {
        const [box, board] = [label.getBBox(), label.ownerSVGElement.viewBox.baseVal];
        return box.x < 0 || box.x + box.width > board.width;
      }).map((label) => label.textContent));
      assert.deepEqual(cut, [], 'labels are whole');
      const unmet = page.locator('.alert tbody tr', { hasText: `in${MARKUP}` });
      assert.match(await unmet.innerText(), /IPS[\s\S]*down[\s\S]*ips-0/);
      await page.getByRole('row', { name: new RegExp('^ips-0 IPS core down') }).waitFor();
      await readable(page);
      await picture(page, 'circuits-light');
      await hybrid.report([{ input: 'port0', output: 'port2' }]);
      await page.getByRole('row', { name: /port0.*port2.* set / }).waitFor();
      await see(page, 'as wanted');
      await hybrid.topology({ middlebox: { name: 'ips-0', up: true } });
      await page.locator('.alert', { hasText: "can't pass" }).waitFor({ state: 'detached' });
    });

    await step('servers: one that answers, two that do not, each with why', async () => {
      await go(page, 'Servers');
      await page.getByRole('row', { name: /^history server http:\/\/127\.0\.0\.1:\d+ answers yes/ }).waitFor();
      await page.getByRole('row', { name: /^name node http:\/\/127\.0\.0\.1:1 no good answer for .* never/ }).waitFor();
      await page.getByRole('row', { name: /^sdn controller http:\/\/127\.0\.0\.1:2 no good answer for .*refused/ }).waitFor();
      await page.getByRole('row', { name: /^ocs no current/ }).waitFor();
      await readable(page);
      await picture(page, 'servers-light');
    });

    await step('alerts: judged by gauges, or said to be Prometheus\'s; each with its runbook', async () => {
      await page.getByRole('navigation').getByRole('link', { name: 'Alerts' }).click();
      await page.getByRole('row', { name: /^HintdControllerAway (pending|FIRING)/ }).waitFor();
      await page.getByRole('row', { name: /^HintdResourceManagerSilent nothing of the kind here/ }).waitFor();
      await page.getByRole('row', { name: /^HintdPairsCut quiet/ }).waitFor();
      await page.getByRole('row', { name: /^HintdSlow judged by Prometheus/ }).waitFor();
      assert.equal(await page.getByRole('link', { name: /^Runbook of / }).count(), await page.locator('tbody tr').count());
      for (const name of await page.locator('tbody th').allInnerTexts()) {
        await page.evaluate((to) => { location.hash = '#/alerts/' + to; }, name);
        await page.getByRole('heading', { level: 2, name, exact: true }).waitFor();
        const texts = await page.locator('section.panel > p, tbody td').allInnerTexts();
        assert.deepEqual(texts.filter((text) => text.includes('{{')), [], `templates of ${name}`);
      }
      // It fires after a minute; the head and the overview say so as well.
      await page.getByRole('row', { name: /^HintdControllerAway FIRING/ }).waitFor();
      await page.locator('nav .count').waitFor();
      await page.getByRole('link', { name: 'Runbook of HintdControllerAway' }).click();
      await see(page, /operations\.md#hintdcontrolleraway/);
      await see(page, 'hintd does not reach the SDN controller');
      assert.match(await page.locator('.runbook').innerText(), /controller/);
      // As elements, and texts of theirs: what a runbook spells is no markup.
      await page.route('**/api/alerts', async (route) => {
        const answer = await route.fetch();
        const json = await answer.json();
        Object.assign(json.rules.find((rule) => rule.name === 'HintdLinkDown'), { summary: 'links are down, says hintd', series: [], runbook: `Do this first: \`hintctl doctor\`.\n\nThen\n\n- **look** at [the other](#hintdslow)\n  ${MARKUP}\n- and [elsewhere](network.md)\n\n\`\`\`\n$ x *y*\n\`\`\`\n` });
        await route.fulfill({ response: answer, json });
      });
      await page.evaluate(() => { location.hash = '#/alerts/HintdLinkDown'; });
      await see(page, 'Links are down, says hintd. Hints are made for what is left');
      await page.locator('.runbook p.note code', { hasText: 'hintctl doctor' }).waitFor();
      await page.locator('.runbook li', { hasText: MARKUP }).locator('strong', { hasText: 'look' }).waitFor();
      assert.equal(await page.locator('.runbook a').evaluateAll((all) => all.map((one) => one.getAttribute('href')).join()), '#/alerts/HintdSlow');
      assert.equal(await page.locator('.runbook pre').innerText(), '$ x *y*');
      assert.equal(await page.getByRole('link', { name: 'Links that are down' }).getAttribute('href'), '#/network/failed');
      await page.unroute('**/api/alerts');
      await page.evaluate(() => { location.hash = '#/alerts/HintdControllerAway'; });
      await page.locator('#firing', { hasText: /^\d+ alerts?$/ }).waitFor();
      await readable(page);
      await picture(page, 'alerts-light');
      await go(page, 'Overview');
      await see(page, /Alert HintdControllerAway fires \(not urgent: look within a day\)/);
    });

    await step('these views by keyboard, dark, and on a phone', async () => {
      await go(page, 'Circuits and chains');
      await page.keyboard.press('Tab');
      assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Circuits', 'what scrolls is reached by keys');
      await page.emulateMedia({ colorScheme: 'dark' });
      await go(page, 'Plans');
      await page.getByRole('row', { name: /^tonight/ }).getByRole('link').press('Enter');
      await page.locator('.gantt rect.slice').first().waitFor();
      await picture(page, 'plan-dark');
      await page.setViewportSize({ width: 390, height: 844 });
      for (const view of ['Plans', 'Circuits and chains', 'Servers']) {
        await go(page, view);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.ok(wide <= 0, `${view} is ${wide} pixels too wide`);
      }
      await picture(page, 'servers-phone');
      assert.equal(await page.locator('img').count(), 0, 'no name became markup');
      assert.match(title, / – hintd$/);
      assert.notEqual(await page.title(), '1');
    });
    await irregular({ page, hybrid, step, go, see, readable, until, picture });
    await context.close();
  } catch (error) {
    console.error('hintd said:', daemon.program.said.slice(-3000));
    throw error;
  } finally {
    hybrid.stop();
    server.close();
    await daemon.stop();
  }
}
