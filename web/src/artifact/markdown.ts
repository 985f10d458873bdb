// The part of Markdown that makes a text readable: headings, lists, quotes, code, emphasis and links. It is read into values, which the page
// draws as nodes; nothing in it is ever HTML.

export type Inline =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'strong' | 'em'; inside: readonly Inline[] }
  | { kind: 'link'; href: string; inside: readonly Inline[] };

export type Block =
  | { kind: 'heading'; level: number; inside: readonly Inline[] }
  | { kind: 'paragraph' | 'quote'; inside: readonly Inline[] }
  | { kind: 'code'; language: string; text: string }
  | { kind: 'list'; ordered: boolean; start: number; items: readonly { depth: number; inside: readonly Inline[] }[] }
  | { kind: 'rule' };

const fence = /^ {0,3}(```+|~~~+)\s*([\w+#.-]*)[^`]*$/;
const heading = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const item = /^([ \t]*)(?:[-*+]|(\d{1,9})[.)])[ \t]+(.*)$/;
const rule = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const quote = /^ {0,3}>[ ]?(.*)$/;
const row = /^ {0,3}\|.*\|[ \t]*$/;

/** How deep lists go before they go no deeper to the eye. */
const deepest = 4;

export function blocks(text: string): Block[] {
  const lines = text.split(/\r?\n/);
  const found: Block[] = [];
  let i = 0;
  const gather = (takes: (line: string) => string | null): string => {
    const part: string[] = [];
    for (let piece; i < lines.length && (piece = takes(lines[i]!)) !== null; i++) part.push(piece);
    return part.join('\n');
  };
  while (i < lines.length) {
    const line = lines[i]!;
    let match;
    if (line.trim() === '') {
      i++;
    } else if ((match = fence.exec(line))) {
      const [, mark, language] = match;
      i++;
      const code = gather((l) => (l.trim().startsWith(mark!) && l.trim().replaceAll(mark![0]!, '') === '' ? null : l));
      i++;
      found.push({ kind: 'code', language: language!, text: code });
    } else if ((match = heading.exec(line))) {
      i++;
      found.push({ kind: 'heading', level: match[1]!.length, inside: inline(match[2]!.trimEnd().replace(/[ \t]#+$/, '')) });
    } else if (rule.test(line)) {
      i++;
      found.push({ kind: 'rule' });
    } else if (quote.test(line)) {
      found.push({ kind: 'quote', inside: inline(gather((l) => quote.exec(l)?.[1] ?? null)) });
    } else if (row.test(line)) {
      // A table is read as it is written, in letters of one width.
      found.push({ kind: 'code', language: '', text: gather((l) => (row.test(l) ? l.trim() : null)) });
    } else if ((match = item.exec(line))) {
      const ordered = match[2] !== undefined;
      const items: { depth: number; text: string }[] = [];
      for (; i < lines.length; i++) {
        const next = item.exec(lines[i]!);
        if (next && !rule.test(lines[i]!)) {
          const depth = Math.min(deepest, Math.floor(next[1]!.replaceAll('\t', '    ').length / 2));
          if (depth === 0 && (next[2] !== undefined) !== ordered) break;
          items.push({ depth, text: next[3]! });
        } else if (/^[ \t]+\S/.test(lines[i]!)) {
          items.at(-1)!.text += `\n${lines[i]!.trim()}`;
        } else break;
      }
      found.push({ kind: 'list', ordered, start: Number(match[2] ?? 1), items: items.map(({ depth, text: t }) => ({ depth, inside: inline(t) })) });
    } else {
      const first = i;
      const para = gather((l) => (l.trim() === '' || (i > first && startsBlock(l)) ? null : l.trim()));
      found.push({ kind: 'paragraph', inside: inline(para) });
    }
  }
  return found;
}

function startsBlock(line: string): boolean {
  return fence.test(line) || heading.test(line) || quote.test(line) || row.test(line) || rule.test(line) || item.test(line);
}

// Each alternative stops at a character that begins it, so that no text takes longer than its length.
const spans = /`([^`\n]+)`|!?\[([^[\]]*)\]\(([^()\s]*)(?:[ \t]+"[^"\n]*")?\)|<(https?:\/\/[^\s<>]+)>|\*\*([^*]+)\*\*|__([^_]+)__|\*([^*\s][^*]*)\*|(?<![\p{L}\d_])_([^_\s][^_]*)_(?![\p{L}\d_])/gu;

export function inline(text: string): Inline[] {
  const found: Inline[] = [];
  let at = 0;
  for (const match of text.matchAll(spans)) {
    if (match.index > at) found.push({ kind: 'text', text: text.slice(at, match.index) });
    at = match.index + match[0].length;
    const [all, code, label, href, bare, strong1, strong2, em1, em2] = match;
    const strong = strong1 ?? strong2;
    const em = em1 ?? em2;
    if (code !== undefined) found.push({ kind: 'code', text: code });
    else if (bare !== undefined) found.push(...linked(bare, [{ kind: 'text', text: bare }], bare));
    // A picture is not fetched: what it shows is said, and where it is.
    else if (label !== undefined) found.push(...linked(href!, inline(label || href!), `${label}${label && ' '}(${href})`));
    else if (strong !== undefined) found.push({ kind: 'strong', inside: inline(strong) });
    else if (em !== undefined) found.push({ kind: 'em', inside: inline(em) });
    else found.push({ kind: 'text', text: all });
  }
  if (at < text.length) found.push({ kind: 'text', text: text.slice(at) });
  return found;
}

/** A link where it leads to a page of the web; what else is in its place is said as text. */
function linked(href: string, inside: readonly Inline[], words: string): Inline[] {
  return isWeb(href) ? [{ kind: 'link', href, inside }] : [{ kind: 'text', text: words }];
}

export function isWeb(href: string): boolean {
  try {
    const { protocol } = new URL(href);
    return protocol === 'http:' || protocol === 'https:';
  } catch {
    return false;
  }
}
