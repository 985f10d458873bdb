const first = 1000;
const longest = 30_000;

/**
 * How long to wait before try number n (from 0), in ms: doubling up to half a minute, and between half and all of that, so that the pages of
 * a restarted gateway do not all come back in the same instant.
 */
export function backoff(n: number, random: () => number): number {
  const full = Math.min(longest, first * 2 ** Math.min(n, 10));
  return Math.round(full / 2 + (full / 2) * random());
}

const longestToResume = 15_000;

/**
 * The same for a session that is kept for a while only: full jitter, anything from nothing to the whole of it, so that the first tries come
 * early and many clients are spread over all of the time.
 */
export function fullJitter(n: number, random: () => number): number {
  return Math.round(Math.min(longestToResume, first * 2 ** Math.min(n, 10)) * random());
}
