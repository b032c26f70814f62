// A real daemon in a folder of its own, and what feeds it. All of it ends with `stop`.
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { withAssets } from './assets.mjs';

const { ASSETS, PROGRAMS } = process.env;
const call = promisify(execFile);

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

export class Daemon {
  /** `more`: lines at the end of its configuration. */
  static async start(more = '') {
    const daemon = new Daemon();
    daemon.folder = await mkdtemp(join(tmpdir(), 'hintd-page-'));
    [daemon.grpc, daemon.http] = [await freePort(), await freePort()];
    daemon.children = [];
    daemon.metrics = daemon.http;
    if (ASSETS) {
      daemon.proxy = await withAssets(ASSETS, () => daemon.metrics);
      daemon.http = daemon.proxy.address().port;
    }
    await daemon.configure(more);
    await daemon.run();
    return daemon;
  }

  /** Writes the configuration, with more lines at its end. */
  configure(more = '') {
    const { folder, grpc, metrics } = this;
    return writeFile(join(folder, 'hintd.toml'), `[listen]\ngrpc = "127.0.0.1:${grpc}"\nadmin_socket = "${folder}/admin.sock"\nmetrics = "127.0.0.1:${metrics}"\ndrain = "1s"\n`
      + `[page]\nenabled = true\n[store]\npath = "${folder}/journal.redb"\n[leases]\ntime_to_live = "10s"\n[placer]\nguard = false\n[policy]\ndefault = "container"\n${more}`);
  }

  async run() {
    this.program = this.child('hintd', ['--config', join(this.folder, 'hintd.toml')]);
    for (let at = 0; at < 300; at += 1) {
      if (this.program.exitCode !== null) throw new Error(`hintd ended: ${this.program.said}`);
      try { return await this.ctl('status', '--live'); } catch { await new Promise((done) => setTimeout(done, 100)); }
    }
    throw new Error(`hintd does not answer: ${this.program.said}`);
  }

  child(program, args) {
    const child = spawn(join(PROGRAMS, program), args, { stdio: ['ignore', 'pipe', 'pipe'], env: this.environment() });
    child.said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => { child.said = (child.said + text).slice(-20000); });
    this.children.push(child);
    return child;
  }

  environment() {
    return { ...process.env, HINTD_ADDRESS: `127.0.0.1:${this.grpc}`, HINTD_ADMIN_SOCKET: join(this.folder, 'admin.sock'), XDG_STATE_HOME: this.folder };
  }

  /** What hintctl says as JSON. */
  async ctl(...args) {
    const { stdout } = await call(join(PROGRAMS, 'hintctl'), ['--json', ...args], { env: this.environment(), maxBuffer: 1 << 26 });
    return JSON.parse(stdout);
  }

  /** An address that opens the page once. */
  async page() {
    const { url } = await this.ctl('page');
    return url.replace(`:${this.metrics}/`, `:${this.http}/`);
  }

  // By force: the page's servers are configured, to be seen while they answer nobody.
  emulate(...args) { return this.child('hintctl', ['emulate', '--force', ...args]); }

  static async end(child, signal) {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.once('exit', done));
    child.kill(signal);
    await ended;
  }

  kill() { return Daemon.end(this.program, 'SIGKILL'); }

  async stop() {
    for (const child of this.children.reverse()) await Daemon.end(child, 'SIGKILL');
    this.proxy?.close();
    this.proxy?.closeAllConnections();
    await rm(this.folder, { recursive: true, force: true });
  }
}
