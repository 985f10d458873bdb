import { expect, test } from 'vitest';
import { base64 } from './base64';

test.each([
  ['', ''],
  ['f', 'Zg=='],
  ['fo', 'Zm8='],
  ['foo', 'Zm9v'],
  ['foob', 'Zm9vYg=='],
  ['fooba', 'Zm9vYmE='],
  ['foobar', 'Zm9vYmFy'],
])('RFC 4648: %j is %j', (plain, encoded) => {
  expect(base64(new TextEncoder().encode(plain))).toBe(encoded);
});

test('every byte at every place, as another encoder has it', () => {
  const bytes = Uint8Array.from({ length: 770 }, (_, i) => (i * 7 + (i >> 8)) & 255);
  for (const n of [768, 769, 770]) {
    const part = bytes.subarray(0, n);
    expect(base64(part)).toBe(btoa(String.fromCharCode(...part)));
  }
});
