// A cluster with an optical switch, middleboxes and a plan in force, told over gRPC as feeds, a controller and an application
// tell of theirs: what hintctl's emulated cluster has not. Its names hold markup wherever names come from outside.
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const { MODULES } = process.env;
const load = createRequire(join(MODULES, 'package.json'));
const grpc = load('@grpc/grpc-js');
const { loadSync } = load('@grpc/proto-loader');

export const MARKUP = '<img/src=x/onerror=document.title=1>'; // no name holds white space
/** Control characters and such as turn a line around; what a controller tells is cleaned of them, and they stand in no name. */
export const HIDDEN = '\u001b\u0007\u202e';
export const KEY = `nightly${MARKUP}`;
const RACK = (at) => `/r${at}${MARKUP.replaceAll('/', ':')}`;
const GBIT = 1_000_000_000;
/** From so many bytes on the network takes a burst for an elephant; what each of four maps reads and writes. */
const ELEPHANT = 10_000_000;
const BLOCK = 8_000_000;

/** Answers as a JobHistoryServer without jobs does. */
export async function historyServer() {
  const server = createServer((asked, answer) => {
    answer.writeHead(200, { 'content-type': 'application/json' });
    answer.end(JSON.stringify(asked.url.includes('/jobs') ? { jobs: null } : { historyInfo: { startedOn: 1 } }));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return server;
}

export class Hybrid {
  constructor(daemon) {
    const root = new URL('../../proto', import.meta.url).pathname;
    const files = ['feed', 'routes', 'placement'].map((name) => `hintd/v1/${name}.proto`);
    const { v1 } = grpc.loadPackageDefinition(loadSync(files, { includeDirs: [root], keepCase: true, longs: String, defaults: true, oneofs: true })).hintd;
    const connect = (Service) => new Service(`127.0.0.1:${daemon.grpc}`, grpc.credentials.createInsecure());
    this.daemon = daemon;
    [this.feed, this.routes, this.placement] = [v1.Feed, v1.Routes, v1.Placement].map(connect);
    this.nonce = randomBytes(32);
    this.streams = [];
  }

  call(service, method, request) {
    return new Promise((done, failed) => { service[method](request, (error, answer) => (error ? failed(error) : done(answer))); });
  }

  /** A feed's stream; `send` resolves once the daemon has looked at what was sent, and refused nothing. */
  open(method) {
    const stream = this.feed[method]();
    this.streams.push(stream);
    let [number, waiting, failure] = [0, [], null];
    const look = (through, refused) => {
      if (refused?.length) failure = new Error(`${method}: ${JSON.stringify(refused)}`);
      waiting = waiting.filter((one) => { if (failure) one.failed(failure); else if (one.number <= through) one.done(); else return true; return false; });
    };
    stream.on('data', (ack) => look(Number(ack.through), ack.refused));
    stream.on('error', (error) => { failure = error; look(0, []); });
    const send = (item) => new Promise((done, failed) => {
      number += 1;
      waiting.push({ number, done, failed });
      stream.write({ number, ...item });
    });
    send({ hello: { source: 'test', used_means: 'USED_MEANS_ALLOCATED', names_containers: true } }).catch(() => {});
    return send;
  }

  /** Nodes, the network and its middleboxes, and the input of the planned job. */
  async build() {
    const beats = this.open('Heartbeats');
    const size = { memory: 16384, virtual_cores: 32 };
    const hosts = [0, 1, 2].flatMap((rack) => [0, 1].map((node) => [`r${rack}n${node}`, rack]));
    for (const [host, rack] of hosts) await beats({ register: { host, port: 45454, rack: RACK(rack), total: size } });
    let response = 0;
    const beat = () => { response += 1; return Promise.all(hosts.map(([host]) => beats({ heartbeat: { host, response_id: response, used: { memory: 0, virtual_cores: 0 } } }))); };
    await beat();
    this.beating = setInterval(() => beat().catch(() => {}), 2000);
    this.topology = this.open('Topology');
    await this.topology({ full: this.network(hosts) });
    const middlebox = (name, type, up = true) => ({ name, type, at: 'core', bits_per_s: String(GBIT), up });
    await this.topology({ chains: {
      groups: [],
      boxes: [middlebox(`fw${MARKUP}`, 'FW'), middlebox('ips-0', 'IPS', false)],
      chains: [
        { name: `in${MARKUP}`, application: 'weekly*', sequence: ['FW', 'IPS'], direction: 'in', when_broken: 'closed' },
        { name: 'out', priority: 1, application: 'weekly*', sequence: ['FW'], direction: 'out', when_broken: 'open' },
      ],
    } });
    const blocks = [1, 2, 3, 4].map((block_id) => ({ block_id: String(block_id), bytes: String(BLOCK), hosts: ['r0n0'] }));
    await this.open('Datasets')({ put: { path: '/in', blocks } });
  }

  network(hosts) {
    const link = (id, a, b, up) => ({ id, a, b, bits_per_s: String(GBIT), up });
    const racks = [0, 1, 2];
    return {
      switches: [{ name: 'core', tier: 'core' }, { name: 'ocs', tier: 'optical' }, ...racks.map((rack) => ({ name: `edge${rack}`, tier: 'edge' }))],
      hosts: hosts.map(([name]) => ({ name })),
      links: [
        ...racks.flatMap((rack) => [link(`up${rack}`, `edge${rack}`, 'core', true), link(`port${rack}`, `edge${rack}`, 'ocs', false)]),
        ...hosts.map(([host, rack]) => link(`nic-${host}`, host, `edge${rack}`, true)),
      ],
      optical: { switch: 'ocs', elephant_bytes: String(ELEPHANT) },
    };
  }

  /** A plan with a job that runs now, one that was missed, and one to come; submitted and put in force as operators do it. */
  async plan() {
    const now = Date.now() * 1000;
    const minute = 60_000_000;
    const planned = [[KEY, now, true], ['missed', now - 90 * minute, false], ['later', now + 20 * minute, false]];
    const stage = (rack, start, end, tasks) => ({ tasks, task_time: end - start, slices: [{ rack: RACK(rack), start, end, tasks, containers: tasks }] });
    const jobs = planned.map(([key, at, heavy]) => ({
      job: { key, run: 0 }, arrival: at, heavy, shuffle: 4 * BLOCK, shuffle_time: 1_000_000, start: at, end: at + 11 * minute,
      maps: stage(0, at, at + 5 * minute, 4), reduces: stage(2, at + 6 * minute, at + 11 * minute, 2),
    }));
    const order = [...jobs].sort((a, b) => a.start - b.start);
    const sequence = (name) => order.map(({ job }) => ({ job, stage: name }));
    const plan = {
      format: 'hintd.plan/1', policy: 'jobpacker', objective: 'online', made: now - 120 * minute, from: now - 100 * minute, until: now + 60 * minute,
      assumptions: { uplink: GBIT, circuit: GBIT, elephant: ELEPHANT, over_provisioning: 0, sub_batches: 1, shuffle_term: 'by_width', seed: 1 },
      racks: [{ rack: RACK(0), containers: 4, sequence: sequence('map') }, { rack: RACK(2), containers: 2, sequence: sequence('reduce') }],
      jobs,
    };
    const file = join(this.daemon.folder, 'plan.json');
    await writeFile(file, JSON.stringify(plan));
    await this.daemon.ctl('plan', 'submit', '--name', 'tonight', file);
    await this.daemon.ctl('plan', 'activate', 'tonight');
  }

  /** The optical switch's controller: watches, says what is set and that a port is dark. */
  async watch() {
    const stream = this.routes.watch({ watcher: 'ocs', circuits: true, nonce: this.nonce });
    this.streams.push(stream);
    this.wanted = { version: '0', circuits: [] };
    await new Promise((done, failed) => {
      stream.on('data', (update) => { this.wanted = update.circuits ?? this.wanted; done(); });
      stream.on('error', failed);
    });
    const ports = [{ port: 'port1', state: 'OPTICAL_PORT_STATE_FAILED', reason: `no light ${HIDDEN}${MARKUP}` }];
    const report = (set) => this.call(this.routes, 'reportCircuits', { watcher: 'ocs', version: this.wanted.version, set, ports, nonce: this.nonce });
    await report([]);
    return report;
  }

  /** The planned job: asks, runs its maps, of which two end: with more left than a burst needs, what they wrote asks for a circuit. Resolves once one is wanted. */
  async run() {
    const resource = { memory: 1024, virtual_cores: 1 };
    const group = (name, count, priority, input_paths) => ({ name, role: name, count, resource, priority, input_paths });
    const application = { application_id: 'application_1_0001', attempt: 1 };
    const answer = await this.call(this.placement, 'requestHints', {
      ...application, request_id: 'r1', policy: 'jobpacker', recurring_job_key: KEY, follows: true, user: MARKUP, nonce: this.nonce,
      groups: [group('map', 4, 1, ['/in']), group('reduce', 2, 2, [])],
    });
    const follow = this.placement.follow();
    this.streams.push(follow);
    follow.on('error', () => {});
    follow.on('data', () => {});
    follow.write({ start: { ...application, token: answer.token } });
    const event = (of, number, what) => ({ ...application, group: of, task: `${of}-${number}`, ...what });
    const begins = (of, number, host) => event(of, number, { allocated: { host, container_id: `container_1_0001_01_${String(number + (of === 'map' ? 2 : 100)).padStart(6, '0')}` } });
    const ends = (number) => event('map', number, { finished: { host: 'r0n0', duration_ms: '1000', input_bytes: String(BLOCK), output_bytes: String(BLOCK) } });
    const events = [0, 1, 2, 3].map((map) => begins('map', map, 'r0n0')).concat([0, 1].map((reduce) => begins('reduce', reduce, 'r2n0')), [0, 1].map(ends));
    follow.write({ events });
    for (let at = 0; at < 300 && !this.wanted.circuits.length; at += 1) await pause(100);
    if (!this.wanted.circuits.length) throw new Error('no circuit is wanted');
  }

  stop() {
    clearInterval(this.beating);
    for (const stream of this.streams) { stream.on('error', () => {}); stream.cancel(); }
    for (const service of [this.feed, this.routes, this.placement]) service.close();
  }
}
