// The page's files from a folder, in place of those within the program: a change of theirs is tested without a build.
import { readFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { extname, join, normalize } from 'node:path';

/** Of files that the program does not have yet. */
const KINDS = { '.mjs': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml' };

/** Passes everything on to the daemon; of a file that it serves, headers and all, the text is the folder's. */
export async function withAssets(folder, port) {
  const server = createServer((asked, answer) => {
    const headers = { ...asked.headers };
    delete headers['if-none-match']; // the program's files have not changed, those of the folder have
    const onward = request({ host: '127.0.0.1', port: port(), path: asked.url, method: asked.method, headers }, async (found) => {
      const path = new URL(asked.url, 'http://127.0.0.1').pathname.replace(/^\/page\//, '');
      const isNew = found.statusCode === 404 && extname(path) in KINDS;
      const isFile = (found.statusCode === 200 || isNew) && !path.startsWith('api/');
      const text = isFile ? await readFile(join(folder, normalize('/' + (path || 'index.html')))).catch(() => null) : null;
      const { etag, 'content-length': length, ...kept } = found.headers;
      if (isNew && text) kept['content-type'] = KINDS[extname(path)];
      answer.writeHead(text ? 200 : found.statusCode, text ? kept : found.headers);
      if (text) { found.resume(); answer.end(text); } else found.pipe(answer);
      answer.on('close', () => found.destroy());
      found.on('error', () => answer.destroy()); // a daemon that is gone ends its streams
    });
    onward.on('error', () => answer.destroy());
    asked.pipe(onward);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return server;
}
