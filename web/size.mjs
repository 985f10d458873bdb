// Prints how much each page loads, before the first press and in all, and fails the build past a budget.
import { gzipSync } from 'node:zlib';
import { readdirSync, readFileSync } from 'node:fs';

const assets = readdirSync('dist/assets').filter((name) => /\.(js|css)$/.test(name));
const text = (name) => readFileSync(`dist/${name}`, 'utf8');
const isLiveKit = (name) => name.startsWith('livekit-');

/** What is loaded with a file: what it names, but for what it asks for when there is something to show with it. */
const atOnce = (source) => source.replaceAll(/\bimport\([^)]*\)/g, '').replaceAll(/__vite__mapDeps[^;]*;/g, '');

/** The assets that a page needs, and those that these name: its chunks, worklets and styles. */
function reach(page, names) {
  const found = new Set();
  const look = (source) => {
    for (const name of assets) {
      if (found.has(name) || !names(source).includes(name)) continue;
      found.add(name);
      look(text(`assets/${name}`));
    }
  };
  look(text(page));
  return [...found].sort();
}

function weigh(what, names, budget) {
  let total = 0;
  console.log(what);
  for (const name of names) {
    const size = gzipSync(text(`assets/${name}`)).length;
    total += size;
    console.log(`${String(size).padStart(9)} B gzip  ${name}`);
  }
  console.log(`${String(total).padStart(9)} B gzip  of ${budget}`);
  if (total <= budget) return;
  console.error(`${what} is over its budget.`);
  process.exitCode = 1;
}

const whole = (source) => source;
const index = reach('index.html', whole).filter((name) => !isLiveKit(name));
const phone = reach('phone.html', whole);
const entry = reach('index.html', atOnce);
weigh('the page, before the first press', entry, 60 * 1024);
weigh('the page, all of it', index, 120 * 1024);
for (const view of ['SignalsView', 'WiringView']) {
  const own = assets.filter((name) => name.startsWith(view) || name.startsWith('watching-')); // and what both of them share
  const behind = own.flatMap((name) => reach(`assets/${name}`, atOnce)).filter((name) => !entry.includes(name));
  weigh(`${view}, when it is opened first`, [...new Set([...own, ...behind])], 24 * 1024);
}
weigh('the phone, before its room is joined', reach('phone.html', atOnce), 70 * 1024);
weigh('LiveKit, with the room', assets.filter(isLiveKit), 144 * 1024);
for (const name of assets) {
  if (index.includes(name) || phone.includes(name)) continue; // an asset that no page reaches was not weighed
  console.error(`${name} belongs to no page.`);
  process.exitCode = 1;
}
