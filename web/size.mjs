// Prints how much the page loads before the first press, and in all; and fails the build past either budget.
import { gzipSync } from 'node:zlib';
import { readdirSync, readFileSync } from 'node:fs';

const index = readFileSync('dist/index.html', 'utf8');
const first = { budget: 60 * 1024, total: 0 };
const all = { budget: 120 * 1024, total: 0 };
for (const name of readdirSync('dist/assets').sort()) {
  if (!/\.(js|css)$/.test(name)) continue;
  const size = gzipSync(readFileSync(`dist/assets/${name}`)).length;
  // The first press needs what the page names, and both worklets; the rest is asked for when there is something to show with it.
  const early = index.includes(name) || name.includes('worklet');
  if (early) first.total += size;
  all.total += size;
  console.log(`${String(size).padStart(7)} B gzip  ${name}${early ? '' : ', on demand'}`);
}
console.log(`${String(first.total).padStart(7)} B gzip  of ${first.budget} before the first press`);
console.log(`${String(all.total).padStart(7)} B gzip  of ${all.budget} in all`);
if (first.total > first.budget || all.total > all.budget) {
  console.error('The page is over its budget.');
  process.exit(1);
}
