// Prints how much the page loads before the first press, and fails the build past the budget.
import { gzipSync } from 'node:zlib';
import { readdirSync, readFileSync } from 'node:fs';

const budget = 60 * 1024;
let total = 0;
for (const name of readdirSync('dist/assets').sort()) {
  if (!/\.(js|css)$/.test(name)) continue;
  const size = gzipSync(readFileSync(`dist/assets/${name}`)).length;
  total += size;
  console.log(`${String(size).padStart(7)} B gzip  ${name}`);
}
console.log(`${String(total).padStart(7)} B gzip  of ${budget} before the first press`);
if (total > budget) {
  console.error('The page is over its budget.');
  process.exit(1);
}
