// How finely the browser's clock counts: what browsers give a page differs, and so does what they give it over https.

/** The step in which a clock counts, in ms: the least by which it was seen to go on; infinite if it stands still. */
export function stepOf(clock: () => number): number {
  let last = clock();
  const until = last + LOOKS_MS;
  let [seen, least] = [0, Number.POSITIVE_INFINITY];
  for (let looks = 0; seen < ENOUGH && last < until && looks < MOST_LOOKS; looks++) {
    const now = clock();
    if (now <= last) continue;
    [seen, least, last] = [seen + 1, Math.min(least, now - last), now];
  }
  return least;
}

/** From this step on (ms) the digits of a short latency are the clock's own. */
export const COARSE_MS = 0.5;
/**
 * From this step on (ms) a browser hides from pages what it is (Firefox' `resistFingerprinting`, as in Tor Browser and
 * LibreWolf: 16.7 ms), and tells them a protocol that it makes up. It is the bound of the best grade.
 */
export const VAGUE_MS = 5;

const ENOUGH = 20;
const LOOKS_MS = 50;
/** A clock that goes on only between tasks is given up: a look takes some 50 ns, and a step of 100 ms some two million. */
const MOST_LOOKS = 20_000_000;
