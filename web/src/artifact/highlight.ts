// A small highlighter: comments, strings, numbers and keywords, which is what the eye looks for. One pass, one regular expression a family.

export type TokenKind = 'comment' | 'string' | 'number' | 'keyword' | null;

export interface Token {
  kind: TokenKind;
  text: string;
}

interface Family {
  pattern: RegExp;
  keywords: ReadonlySet<string>;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));

/** Each part takes at least one character and never looks back, so that no text takes longer than its length. */
const part = {
  slashes: String.raw`\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)`,
  hash: String.raw`#[^\n]*`,
  dashes: String.raw`--[^\n]*|\/\*[^]*?(?:\*\/|$)`,
  block: String.raw`\/\*[^]*?(?:\*\/|$)`,
  angles: String.raw`<!--[^]*?(?:-->|$)`,
  triple: String.raw`"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)`,
  double: String.raw`"(?:[^"\\\n]|\\[^])*"?`,
  single: String.raw`'(?:[^'\\\n]|\\[^])*'?`,
  back: String.raw`${'`'}(?:[^${'`'}\\]|\\[^])*${'`'}?`,
};
const number = String.raw`(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)`;

function family(comments: string[], strings: string[], keywords: string, word = String.raw`[\p{L}_$@][\p{L}\d_$]*`): Family {
  const groups = [
    comments.length > 0 && `(?<comment>${comments.join('|')})`,
    `(?<string>${strings.join('|')})`,
    `(?<number>${number})`,
    `(?<word>${word})`,
  ];
  return { pattern: new RegExp(groups.filter(Boolean).join('|'), 'gu'), keywords: words(keywords) };
}

const { slashes, hash, dashes, block, angles, triple, double, single, back } = part;

const c =
  'auto break case char class const constexpr continue default delete do double else enum extern false final float for goto if inline int long namespace new nullptr operator override private protected public register return short signed sizeof static struct super switch template this throw true try typedef typename union unsigned using virtual void volatile while bool null';
const families = {
  go: family([slashes], [double, back, single], 'break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota any error'),
  js: family([slashes], [double, single, back], 'abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in infer instanceof interface is keyof let namespace never new null number object of private protected public readonly return satisfies set static string super switch symbol this throw true try type typeof undefined unknown var void while with yield'),
  c: family([slashes], [double, single], c),
  java: family([slashes], [triple, double, single], `${c} abstract as base boolean byte catch data extends finally fun implements import in instanceof interface internal is let object open out package record ref sealed string synchronized throws val var when where yield foreach async await func guard protocol extension init nil self`),
  rust: family([slashes], [double], 'as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while'),
  php: family([slashes, hash], [double, single], 'abstract and array as break case catch class const continue declare default do echo else elseif empty extends false final finally fn for foreach function global if implements include instanceof interface isset match namespace new null or private protected public readonly require return static switch throw trait true try use var while yield'),
  python: family([hash], [triple, double, single], 'and as assert async await break class continue def del elif else except False finally for from global if import in is lambda match case None nonlocal not or pass raise return self True try while with yield'),
  ruby: family([hash], [double, single], 'alias and begin break case class def defined do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield require'),
  shell: family([hash], [double, single], 'case do done elif else esac export fi for function if in local readonly return select set shift then trap unset until while true false', String.raw`[\p{L}_][\p{L}\d_-]*`),
  yaml: family([hash], [double, single], 'true false null yes no on off'),
  sql: family([dashes], [single, double], 'add all alter and as asc begin between by case check column commit constraint create cross default delete desc distinct drop else end exists false foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then true union unique update using values view when where with'),
  json: family([], [double], 'true false null'),
  css: family([block], [double, single], 'important media import supports keyframes layer container from to auto none inherit initial unset', String.raw`[@\p{L}_-][\p{L}\d_-]*`),
  markup: family([angles], [double, single], 'DOCTYPE doctype xml'),
} satisfies Record<string, Family>;

type FamilyName = keyof typeof families;

const languages: Record<string, FamilyName> = {
  go: 'go',
  typescript: 'js',
  ts: 'js',
  tsx: 'js',
  javascript: 'js',
  js: 'js',
  jsx: 'js',
  mjs: 'js',
  c: 'c',
  h: 'c',
  cpp: 'c',
  hpp: 'c',
  'c++': 'c',
  java: 'java',
  kotlin: 'java',
  kt: 'java',
  swift: 'java',
  csharp: 'java',
  cs: 'java',
  rust: 'rust',
  rs: 'rust',
  php: 'php',
  python: 'python',
  py: 'python',
  ruby: 'ruby',
  rb: 'ruby',
  bash: 'shell',
  sh: 'shell',
  zsh: 'shell',
  shell: 'shell',
  dockerfile: 'shell',
  makefile: 'shell',
  yaml: 'yaml',
  yml: 'yaml',
  toml: 'yaml',
  ini: 'yaml',
  sql: 'sql',
  json: 'json',
  css: 'css',
  scss: 'css',
  html: 'markup',
  xml: 'markup',
  svg: 'markup',
};

/** The language of a file, by its name, where none is told. */
export function languageOf(path: string): string {
  const name = path.split(/[/\\]/).at(-1)!.toLowerCase();
  return name.includes('.') ? name.slice(name.lastIndexOf('.') + 1) : name;
}

/** Reads a text as tokens that put together are the text again. In a language that is not known, it is one token. */
export function tokens(text: string, language: string): Token[] {
  const name = language.toLowerCase();
  if (!Object.hasOwn(languages, name)) return text === '' ? [] : [{ kind: null, text }];
  const known = languages[name]!;
  const { pattern, keywords } = families[known];
  const found: Token[] = [];
  const add = (kind: TokenKind, piece: string): void => {
    const last = found.at(-1);
    if (piece === '') return;
    if (last && last.kind === kind) last.text += piece;
    else found.push({ kind, text: piece });
  };
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    add(null, text.slice(at, match.index));
    const { comment, string, number: digits, word } = match.groups!;
    const isKeyword = word !== undefined && keywords.has(known === 'sql' ? word.toLowerCase() : word);
    add(comment !== undefined ? 'comment' : string !== undefined ? 'string' : digits !== undefined ? 'number' : isKeyword ? 'keyword' : null, match[0]);
    at = match.index + match[0].length;
  }
  add(null, text.slice(at));
  return found;
}
