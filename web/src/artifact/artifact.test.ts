import { describe, expect, test } from 'vitest';
import { changes, diffLines } from './diff';
import { languageOf, tokens } from './highlight';
import { blocks, inline, isWeb } from './markdown';

/** The tokens that are something, as "kind: text". */
const marked = (text: string, language: string): string[] => tokens(text, language).flatMap(({ kind, text: t }) => (kind ? [`${kind}: ${t}`] : []));

describe('the highlighter', () => {
  test.each([
    ['go', 'func f() { // why\n\treturn 0x1F, "a\\"b" }', ['keyword: func', 'comment: // why', 'keyword: return', 'number: 0x1F', 'string: "a\\"b"']],
    ['typescript', 'const a = `x ${b}\n` /* c */ + 1e3;', ['keyword: const', 'string: `x ${b}\n`', 'comment: /* c */', 'number: 1e3']],
    ['python', 'def f(x):\n  """doc\n  more"""\n  # why\n  return None', ['keyword: def', 'string: """doc\n  more"""', 'comment: # why', 'keyword: return', 'keyword: None']],
    ['sql', "SELECT 'it' FROM t -- all\n", ['keyword: SELECT', "string: 'it'", 'keyword: FROM', 'comment: -- all']],
    ['json', '{"a": [true, -1.5]}', ['string: "a"', 'keyword: true', 'number: 1.5']],
    ['bash', 'if true; then # x\n echo "hi"; fi', ['keyword: if', 'keyword: true', 'keyword: then', 'comment: # x', 'string: "hi"', 'keyword: fi']],
    ['rust', "fn f<'a>(x: &'a str) {}", ['keyword: fn']],
    ['html', '<!-- c --><a href="x">if</a>', ['comment: <!-- c -->', 'string: "x"']],
    ['yaml', 'on: true # why', ['keyword: on', 'keyword: true', 'comment: # why']],
    ['klingon', 'if "x" // 1', []],
    ['constructor', 'if', []],
  ])('%s', (language, text, expected) => {
    expect(marked(text, language)).toEqual(expected);
  });

  test('a keyword is a whole word, and an unclosed string ends with its line', () => {
    expect(marked('ifs format if', 'go')).toEqual(['keyword: if']);
    expect(marked('x = "open\nif', 'go')).toEqual(['string: "open', 'keyword: if']);
    expect(marked('/* open\nif', 'go')).toEqual(['comment: /* open\nif']);
  });

  test.each(['go', 'python', 'html', 'sql', 'css', 'nothing'])('%s: the tokens are the text, whatever it is, and soon', (language) => {
    const hostile = ['/*', '"\\', '`', "'''", '<!--', '#', '--', 'é', '🧵', '\u202e', '0x', '1e', '_', '\n', ' '];
    let n = 7;
    const text = Array.from({ length: 60_000 }, () => hostile[(n = (n * 1103515245 + 12345) & 0x7fffffff) % hostile.length]).join('');
    expect(tokens(text, language).map((t) => t.text).join('')).toBe(text);
    for (const unit of ['"', '/*', '<!--', "'", '\\"', '`', 'a', '1']) {
      const long = unit.repeat(100_000);
      expect(tokens(long, language).map((t) => t.text).join('')).toBe(long);
    }
  });

  test.each([
    ['a/b.test.ts', 'ts'],
    ['C:\\x\\Y.PY', 'py'],
    ['a.b/Makefile', 'makefile'],
    ['', ''],
  ])('the language of %s is %s', (path, language) => expect(languageOf(path)).toBe(language));
});

describe('a diff', () => {
  const diff = '--- a/f\n+++ b/f\n@@ -3,3 +3,4 @@ func\n same\n--- not a name\n+++ nor this\n+more\n end\n\\ No newline at end of file\n@@ -20 +21 @@\n-x\n+y\n';
  test('its lines, with their numbers before and after', () => {
    expect(diffLines(diff, 100).lines.map(({ kind, text, before, after }) => [kind, text, before, after])).toEqual([
      ['place', '@@ -3,3 +3,4 @@ func', null, null],
      ['same', 'same', 3, 3],
      ['removed', '-- not a name', 4, null],
      ['added', '++ nor this', null, 4],
      ['added', 'more', null, 5],
      ['same', 'end', 5, 6],
      ['note', 'No newline at end of file', null, null],
      ['place', '@@ -20 +21 @@', null, null],
      ['removed', 'x', 20, null],
      ['added', 'y', null, 21],
    ]);
    expect(changes(diff)).toEqual({ added: 3, removed: 2 });
  });
  test('what is too much is left as it is', () => {
    expect(diffLines(diff, 2)).toMatchObject({ lines: [{ kind: 'place' }, { text: 'same' }], rest: diff.slice(diff.indexOf('--- not')) });
  });
  test('a second file, a place that says nothing, and no diff at all', () => {
    expect(diffLines('@@ -1 +1 @@\n-a\n+b\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-c\n+d', 100).lines.map((l) => l.text)).toEqual(['@@ -1 +1 @@', 'a', 'b', '@@ -1 +1 @@', 'c', 'd']);
    expect(diffLines('--- a\n+++ b\n@@ Edit @@\n', 9).lines).toEqual([{ kind: 'place', text: '@@ Edit @@', before: null, after: null }]);
    expect(diffLines('hello\n', 9).lines).toEqual([{ kind: 'same', text: 'hello', before: null, after: null }]);
  });
});

describe('markdown', () => {
  test('the blocks', () => {
    const text = '# One *two* #\n\npara\nmore\n- a\n  on\n  - b\n1. c\n2) d\n> q\n> r\n```go\n# x\n```\n***\nend';
    expect(blocks(text).map((b) => b.kind)).toEqual(['heading', 'paragraph', 'list', 'list', 'quote', 'code', 'rule', 'paragraph']);
    const [first, , list, numbers, , code] = blocks(text);
    expect(first).toMatchObject({ level: 1, inside: [{ text: 'One ' }, { kind: 'em' }] });
    expect(list).toMatchObject({ ordered: false, items: [{ depth: 0, inside: [{ text: 'a\non' }] }, { depth: 1 }] });
    expect(numbers).toMatchObject({ ordered: true, start: 1, items: [{ depth: 0 }, { depth: 0 }] });
    expect(code).toEqual({ kind: 'code', language: 'go', text: '# x' });
  });
  test('code that is not closed, and a heading that is none', () => {
    expect(blocks('```\na\n\n# b')).toEqual([{ kind: 'code', language: '', text: 'a\n\n# b' }]);
    expect(blocks('so\n| a | b |\n| - | - |\n  | 1 | *2* |\nand')).toMatchObject([
      { kind: 'paragraph' },
      { kind: 'code', language: '', text: '| a | b |\n| - | - |\n| 1 | *2* |' },
      { kind: 'paragraph' },
    ]);
    expect(blocks('| no table')).toMatchObject([{ kind: 'paragraph' }]);
    expect(blocks('#none')).toMatchObject([{ kind: 'paragraph' }]);
  });
  test('what is inside of a line', () => {
    expect(inline('a **b** `**c**` snake_case_name _d_')).toEqual([
      { kind: 'text', text: 'a ' },
      { kind: 'strong', inside: [{ kind: 'text', text: 'b' }] },
      { kind: 'text', text: ' ' },
      { kind: 'code', text: '**c**' },
      { kind: 'text', text: ' snake_case_name ' },
      { kind: 'em', inside: [{ kind: 'text', text: 'd' }] },
    ]);
  });
  test.each([
    ['[x](https://a.example/b)', 'https://a.example/b'],
    ['<http://a.example>', 'http://a.example'],
    ['![x](https://a.example/p.png "t")', 'https://a.example/p.png'],
  ])('%s leads somewhere', (text, href) => expect(inline(text)).toMatchObject([{ kind: 'link', href }]));
  test.each(['javascript:alert(1)', 'JaVaScRiPt:alert', 'data:text/html,x', 'file:///etc', '/relative', 'vbscript:x', ''])('%s does not', (href) => {
    expect(isWeb(href)).toBe(false);
    expect(JSON.stringify(inline(`[x](${href})`))).not.toContain('"link"');
  });
  test('HTML is text, and hostile text is read soon', () => {
    expect(blocks('<script>alert(1)</script>')).toEqual([{ kind: 'paragraph', inside: [{ kind: 'text', text: '<script>alert(1)</script>' }] }]);
    const spaces = ' '.repeat(60_000);
    for (const line of ['# a', '- a', 'a', '*', '1.', '> ']) expect(blocks(`${line}${spaces}b`)).toHaveLength(1);
    for (const unit of ['[', '*', '**a', '_', '`', '<http://', '[a](', '- ', '> ', '#', '\n\nx', '```\n', '* * ', '[a](b "']) {
      expect(blocks(unit.repeat(60_000 / unit.length)).length).toBeGreaterThan(0);
    }
  });
});
