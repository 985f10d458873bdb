/**
 * What is shown of a text that somebody else wrote, where it stands among words of the page: characters that turn round what follows them
 * (Unicode's embeddings, overrides and isolates), and control characters, are written out, so that a line cannot say other than it does.
 */
export function plain(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (c) =>
    c === '\r' ? '' : `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`,
  );
}

/** The same on one line, and no longer than that. */
export function oneLine(text: string, most = 200): string {
  // Cut first: what is not shown is not worth a look.
  const line = plain(text.slice(0, 4 * most).replace(/\s+/g, ' ').trim());
  return line.length > most || text.length > 4 * most ? `${line.slice(0, most)}…` : line;
}
