// The part of Markdown that runbooks have, as elements: whatever a text spells, it is the text of one of them and never markup.
import { html } from './parts.mjs';

/** Code, strong and emphasized words, links; the first that begins is the first that counts. */
const INLINE = /`([^`]+)`|\*\*(.+?)\*\*|\*([^\s*][^*]*)\*|\[([^\]]+)\]\(([^)\s]+)\)/;

/** A line's parts. `link` says where a target of the page's own is, or null: then it is named in words. */
function inline(text, link) {
  const found = INLINE.exec(text);
  if (!found) return text;
  const [all, code, strong, slight, named, target] = found;
  const to = target && link(target);
  const part = code ? html`<code>${code}</code>` : strong ? html`<strong>${inline(strong, link)}</strong>` : slight ? html`<em>${inline(slight, link)}</em>`
    : to ? html`<a href=${to}>${inline(named, link)}</a>` : html`${inline(named, link)} <span class="target">(${target})</span>`;
  return html`${text.slice(0, found.index)}${part}${inline(text.slice(found.index + all.length), link)}`;
}

const ITEM = /^(\s*)(?:[-*]|(\d+)\.)\s+(.*)$/;

/** Lines as blocks: code between fences, headings, lists, tables as they are, paragraphs. */
function blocks(text) {
  const found = [];
  let open = null;
  const begin = (block) => { found.push(block); open = block; };
  let fenced = false;
  for (const line of text.split('\n')) {
    const item = ITEM.exec(line);
    if (line.trimStart().startsWith('```')) {
      fenced = !fenced;
      if (fenced) begin({ kind: 'code', lines: [] });
      else open = null;
    } else if (fenced) open.lines.push(line);
    else if (!line.trim()) open = open?.kind === 'list' ? open : null;
    else if (/^#+\s/.test(line)) { begin({ kind: 'head', lines: [line.replace(/^#+\s+/, '')] }); open = null; }
    else if (line.startsWith('|')) { if (open?.kind !== 'code') begin({ kind: 'code', lines: [] }); open.lines.push(line); }
    else if (item) {
      const isOrdered = item[2] !== undefined;
      if (open?.kind !== 'list' || open.isOrdered !== isOrdered) begin({ kind: 'list', isOrdered, items: [] });
      open.items.push([item[3]]);
    } else if (open?.kind === 'list' && /^\s/.test(line)) open.items.at(-1).push(line.trim());
    else if (open?.kind === 'text') open.lines.push(line.trim());
    else begin({ kind: 'text', lines: [line.trim()] });
  }
  return found;
}

const FIRST = /^(\*\*)?Do this first/;

/** A text of Markdown. */
export function Markdown({ text, link }) {
  const of = (lines) => inline(lines.join(' '), link);
  return html`<div class="runbook">${blocks(text).map((block) => {
    if (block.kind === 'code') return html`<pre>${block.lines.join('\n')}</pre>`;
    if (block.kind === 'head') return html`<h4>${of(block.lines)}</h4>`;
    if (block.kind === 'list') return html`<${block.isOrdered ? 'ol' : 'ul'}>${block.items.map((lines) => html`<li>${of(lines)}</li>`)}<//>`;
    return html`<p class=${FIRST.test(block.lines[0]) ? 'note' : ''}>${of(block.lines)}</p>`;
  })}</div>`;
}
