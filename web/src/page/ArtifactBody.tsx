import { Fragment, type ComponentChildren, type JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { diffLines, type DiffLine } from '../artifact/diff';
import { languageOf, tokens, type Token } from '../artifact/highlight';
import { blocks, type Block, type Inline } from '../artifact/markdown';
import type { ArtifactBody as Body, Found } from '../state/artifacts';
import { plain } from '../state/plain';

// A quarter of a megabyte must not stop the page: so much is drawn with all its marks, and the rest as plain text, in parts that the browser
// lays out only when they come into sight.
const markedLines = 1500;
const markedChars = 60_000;
const longestMarkedLine = 2000;
const markdownChars = 100_000;
const partLines = 500;

/** What an artifact shows. It is made of text nodes: nothing in it is ever read as HTML. */
export function ArtifactBody({ body }: { body: Body }): JSX.Element {
  return useMemo(() => drawn(body), [body]);
}

function drawn(body: Body): JSX.Element {
  switch (body.kind) {
    case 'diff':
      return <Diff diff={plain(body.diff)} language={languageOf(body.file)} />;
    case 'code':
      return <Code text={plain(body.content)} language={body.language || languageOf(body.file)} first={body.startLine} />;
    case 'file':
      return <Code text={plain(body.content)} language={body.language || languageOf(body.path)} first={1} />;
    case 'markdown':
      return <Markdown text={plain(body.content)} />;
    case 'search_results':
      return <Results query={body.query} results={body.results} />;
    case 'error':
      return <pre class="failure">{plain(body.message)}</pre>;
  }
}

function Marked({ marks }: { marks: readonly Token[] }): JSX.Element {
  return (
    <>
      {marks.map(({ kind, text }, i) =>
        kind ? (
          <span key={i} class={kind}>
            {text}
          </span>
        ) : (
          text
        ),
      )}
    </>
  );
}

/** Where the part that is drawn with its marks ends: after a line, within both bounds. */
export function markedEnd(text: string): number {
  let end = 0;
  for (let lines = 0; lines < markedLines; lines++) {
    const next = text.indexOf('\n', end);
    const to = next < 0 ? text.length : next + 1;
    if (to > markedChars || to - end > longestMarkedLine) break;
    end = to;
    if (next < 0) break;
  }
  return end;
}

function Code({ text, language, first }: { text: string; language: string; first: number }): JSX.Element {
  const trimmed = text.replace(/\n$/, '');
  const end = markedEnd(trimmed);
  const marked = trimmed.slice(0, end).replace(/\n$/, '');
  const lines = end === 0 ? 0 : marked.split('\n').length;
  return (
    <div class="code">
      {end > 0 && (
        <Part from={first} lines={lines}>
          <Marked marks={tokens(marked, language)} />
        </Part>
      )}
      <Plain text={trimmed.slice(end)} from={first + lines} />
    </div>
  );
}

/** Plain lines, in parts. */
function Plain({ text, from }: { text: string; from: number | null }): JSX.Element | null {
  if (text === '') return null;
  const lines = text.split('\n');
  const parts: string[][] = [];
  for (let i = 0; i < lines.length; i += partLines) parts.push(lines.slice(i, i + partLines));
  return (
    <>
      {parts.map((part, i) => (
        <Part key={i} from={from === null ? null : from + i * partLines} lines={part.length}>
          {part.join('\n')}
        </Part>
      ))}
    </>
  );
}

function Part({ from, lines, children }: { from: number | null; lines: number; children: ComponentChildren }): JSX.Element {
  return (
    <div class="part">
      {from !== null && (
        <pre class="numbers" aria-hidden="true">
          {Array.from({ length: lines }, (_, i) => from + i).join('\n')}
        </pre>
      )}
      <pre class="lines">{children}</pre>
    </div>
  );
}

const signs: Record<DiffLine['kind'], string> = { added: '+', removed: '-', same: ' ', place: '', note: '' };

function Diff({ diff, language }: { diff: string; language: string }): JSX.Element {
  const { lines, rest } = diffLines(diff, markedLines);
  return (
    <div class="diff">
      <div class="rows">
        {lines.map((line, i) => (
          <div key={i} class="row" data-line={line.kind}>
            <span class="n" aria-hidden="true">
              {line.before ?? ''}
            </span>
            <span class="n" aria-hidden="true">
              {line.after ?? ''}
            </span>
            <span class="s">{signs[line.kind]}</span>
            <code>
              {line.kind === 'place' || line.kind === 'note' || line.text.length > longestMarkedLine ? (
                line.text
              ) : (
                <Marked marks={tokens(line.text, language)} />
              )}
              {'\n'}
            </code>
          </div>
        ))}
      </div>
      {rest !== '' && <p class="more">The rest, without colours:</p>}
      <Plain text={rest} from={null} />
    </div>
  );
}

function Results({ query, results }: { query: string; results: readonly Found[] }): JSX.Element {
  const files = new Map<string, Found[]>();
  for (const one of results.slice(0, markedLines)) {
    const same = files.get(one.file);
    if (same) same.push(one);
    else files.set(one.file, [one]);
  }
  const rest = results.slice(markedLines);
  const many = (n: number, word: string): string => `${n.toLocaleString('en')} ${word}${n === 1 ? '' : 's'}`;
  const inFiles = new Set(results.map((r) => r.file)).size;
  const places = results.some((r) => r.line > 0) ? `${many(results.length, 'place')} in ${many(inFiles, 'file')}.` : `${many(inFiles, 'file')}.`;
  return (
    <div class="results">
      <p class="more">{results.length > 0 ? places : `Nothing was found${query === '' ? '' : ` for ${plain(query)}`}.`}</p>
      {[...files].map(([file, found]) => (
        <Fragment key={file}>
          <h3>
            <bdi>{plain(file)}</bdi>
          </h3>
          {found
            .filter((r) => r.line > 0)
            .map((r, i) => (
              <div key={i} class="row">
                <span class="n">{r.line}</span>
                <code>{plain(r.content.slice(0, longestMarkedLine))}</code>
              </div>
            ))}
        </Fragment>
      ))}
      <Plain text={plain(rest.map((r) => `${r.file}:${r.line}: ${r.content}`).join('\n'))} from={null} />
    </div>
  );
}

function Markdown({ text }: { text: string }): JSX.Element {
  // Not in the middle of a line.
  const end = text.length <= markdownChars ? text.length : Math.max(0, text.lastIndexOf('\n', markdownChars));
  return (
    <div class="prose">
      {blocks(text.slice(0, end)).map((block, i) => (
        <BlockNode key={i} block={block} />
      ))}
      <Plain text={text.slice(end)} from={null} />
    </div>
  );
}

function BlockNode({ block }: { block: Block }): JSX.Element {
  switch (block.kind) {
    case 'heading': {
      // Below the heading of the artifacts.
      const Level = `h${Math.min(6, block.level + 2)}` as 'h3';
      return (
        <Level data-level={block.level}>
          <InlineNodes nodes={block.inside} />
        </Level>
      );
    }
    case 'paragraph':
      return (
        <p>
          <InlineNodes nodes={block.inside} />
        </p>
      );
    case 'quote':
      return (
        <blockquote>
          <InlineNodes nodes={block.inside} />
        </blockquote>
      );
    case 'code':
      return (
        <pre class="fenced" tabIndex={0}>
          <Marked marks={block.text.length > markedChars ? [{ kind: null, text: block.text }] : tokens(block.text, block.language)} />
        </pre>
      );
    case 'rule':
      return <hr />;
    case 'list': {
      const List = block.ordered ? 'ol' : 'ul';
      let number = block.start;
      return (
        <List>
          {block.items.map(({ depth, inside }, i) => (
            <li key={i} data-depth={depth} value={block.ordered && depth === 0 ? number++ : undefined}>
              <InlineNodes nodes={inside} />
            </li>
          ))}
        </List>
      );
    }
  }
}

function InlineNodes({ nodes }: { nodes: readonly Inline[] }): JSX.Element {
  return (
    <>
      {nodes.map((node, i) => {
        switch (node.kind) {
          case 'text':
            return node.text;
          case 'code':
            return <code key={i}>{node.text}</code>;
          case 'strong':
            return (
              <strong key={i}>
                <InlineNodes nodes={node.inside} />
              </strong>
            );
          case 'em':
            return (
              <em key={i}>
                <InlineNodes nodes={node.inside} />
              </em>
            );
          case 'link':
            return (
              <a key={i} href={node.href} target="_blank" rel="noopener noreferrer">
                <InlineNodes nodes={node.inside} />
              </a>
            );
        }
      })}
    </>
  );
}
