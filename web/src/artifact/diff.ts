export interface DiffLine {
  kind: 'added' | 'removed' | 'same' | 'place' | 'note';
  text: string;
  /** Its number before and after; null where it is not there. */
  before: number | null;
  after: number | null;
}

/**
 * Reads a unified diff, at most `most` lines of it. The names of the files are left out, as they stand above it; what is no diff at all comes as
 * lines that are the same.
 */
export function diffLines(diff: string, most: number): { lines: DiffLine[]; rest: string } {
  const lines: DiffLine[] = [];
  let [before, after] = [0, 0];
  let inside = false; // of a part; a line that begins with --- may be one that was removed
  let [left, right] = [0, 0]; // how many lines the part still has
  let at = 0;
  while (at < diff.length) {
    if (lines.length === most) return { lines, rest: diff.slice(at) };
    let end = diff.indexOf('\n', at);
    if (end < 0) end = diff.length;
    const line = diff.slice(at, end).replace(/\r$/, '');
    at = end + 1;
    const place = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    if (place) {
      [before, left, after, right] = [Number(place[1]), Number(place[2] ?? 1), Number(place[3]), Number(place[4] ?? 1)];
      inside = true;
      lines.push({ kind: 'place', text: line, before: null, after: null });
      continue;
    }
    if (line.startsWith('@@')) {
      lines.push({ kind: 'place', text: line, before: null, after: null });
      continue;
    }
    const over = inside && left <= 0 && right <= 0;
    if ((!inside || over) && /^(---|\+\+\+|diff |index )/.test(line)) continue;
    if (line.startsWith('+')) {
      lines.push({ kind: 'added', text: line.slice(1), before: null, after: inside ? after++ : null });
      right--;
    } else if (line.startsWith('-')) {
      lines.push({ kind: 'removed', text: line.slice(1), before: inside ? before++ : null, after: null });
      left--;
    } else if (line.startsWith('\\')) {
      lines.push({ kind: 'note', text: line.slice(1).trim(), before: null, after: null });
    } else {
      lines.push({ kind: 'same', text: line.replace(/^ /, ''), before: inside ? before++ : null, after: inside ? after++ : null });
      left--;
      right--;
    }
  }
  return { lines, rest: '' };
}

/** How much was added and removed, of all of it. */
export function changes(diff: string): { added: number; removed: number } {
  const { lines } = diffLines(diff, Infinity);
  const count = (kind: DiffLine['kind']): number => lines.filter((l) => l.kind === kind).length;
  return { added: count('added'), removed: count('removed') };
}
