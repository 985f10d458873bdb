// Prints how much each page loads, and fails the build past a budget.
import { gzipSync } from 'node:zlib';
import { readdirSync, readFileSync } from 'node:fs';

const assets = readdirSync('dist/assets').filter((name) => /\.(js|css)$/.test(name));
const text = (name) => readFileSync(name, 'utf8');

/** The assets that a page needs, and those that these name: its chunks, worklets and styles. What is loaded later only is left out. */
function reach(page, later) {
  const found = new Set();
  const look = (source) => {
    for (const name of assets) {
      if (found.has(name) || later.some((l) => name.startsWith(l)) || !source.includes(name)) continue;
      found.add(name);
      look(text(`dist/assets/${name}`));
    }
  };
  look(text(`dist/${page}`));
  return [...found].sort();
}

function weigh(what, names, budget) {
  let total = 0;
  console.log(what);
  for (const name of names) {
    const size = gzipSync(text(`dist/assets/${name}`)).length;
    total += size;
    console.log(`${String(size).padStart(9)} B gzip  ${name}`);
  }
  console.log(`${String(total).padStart(9)} B gzip  of ${budget}`);
  if (total <= budget) return;
  console.error(`${what} is over its budget.`);
  process.exitCode = 1;
}

const later = assets.filter((name) => name.startsWith('livekit-'));
const index = reach('index.html', []);
const phone = reach('phone.html', later);
weigh('the page, before the first press', index, 60 * 1024);
weigh('the phone, before its room is joined', phone, 70 * 1024);
weigh('LiveKit, with the room', later, 144 * 1024);
// An asset that no page reaches was not weighed; and the page is not to carry what only the phone needs.
for (const name of assets) {
  if (index.includes(name) || phone.includes(name) || later.includes(name)) continue;
  console.error(`${name} belongs to no page.`);
  process.exitCode = 1;
}
if (later.length !== 1 || index.some((name) => later.includes(name))) {
  console.error('LiveKit is loaded where it is not needed.');
  process.exitCode = 1;
}
