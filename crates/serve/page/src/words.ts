// What figures mean, in plain words. Pure.

import type { Phase } from "./plan.js";
import type { Figures } from "./samples.js";
import { type Grade, shown } from "./statistics.js";

export interface Words {
  colour: "good" | "fair" | "poor";
  verdict: string;
  meaning: string;
  advice: string;
}

/** What a grade means, and what to do; `limited`: the loads may have met the server's limit, and never filled the line. */
export function words(letter: Grade, limited: boolean): Words {
  const said = ofLine(letter);
  if (!limited) return said;
  if (said.colour !== "good") return { ...said, advice: CURE_OF_UNKNOWN };
  return {
    colour: "good",
    verdict: "Your line stays quick with as much as this server lets pass",
    meaning: "What happens when the line itself is full, this test cannot tell.",
    advice: "To learn what a full line does, measure against a server without such a limit, or with one above the rate of your line.",
  };
}

function ofLine(letter: Grade): Words {
  switch (letter) {
    case "A+":
    case "A":
      return {
        colour: "good",
        verdict: "Your line stays quick while it is busy",
        meaning: "Somebody who downloads or uploads here disturbs nobody else.",
        advice: "There is nothing to do.",
      };
    case "B":
      return {
        colour: "fair",
        verdict: "Your line gets a little slow when it is busy",
        meaning: "Packets wait for a moment in a queue while somebody downloads or uploads.",
        advice: CURE,
      };
    case "C":
      return {
        colour: "fair",
        verdict: "Your line gets slow when it is busy",
        meaning: "Packets wait in a queue that is too long while somebody downloads or uploads.",
        advice: CURE,
      };
    case "D":
    case "F":
      return {
        colour: "poor",
        verdict: "Your line gets very slow when it is busy",
        meaning:
          "Packets wait in a queue that is far too long (bufferbloat): one download or upload disturbs everybody.",
        advice: CURE,
      };
  }
}

const cure = (rates: string) =>
  `A router with a good queue cures this: switch on SQM (cake or fq_codel), at about 90 % of ${rates}. ` +
  "More bandwidth does not.";
const CURE = cure("the rates above");
const CURE_OF_UNKNOWN = cure("your line's rates, which may be more than those above");

/** What people notice of a line with a grade, in the words of `weir test` (`crates/speedtest/src/bufferbloat.rs`). */
export function felt(letter: Grade, limited: boolean): string {
  const said = FELT[letter];
  return limited ? `With as much as this server lets pass ${said}` : said.charAt(0).toUpperCase() + said.slice(1);
}

const FELT: Record<Grade, string> = {
  "A+": "nobody notices that the line is in use.",
  A: "calls and games hardly notice that the line is in use.",
  B: "games become a little sluggish while the line is in use.",
  C: "calls and games suffer while the line is in use.",
  D: "calls stumble and pages wait while the line is in use.",
  F: "calls, games and pages are close to unusable while the line is in use.",
};

/** What the chart of pings shows, of the phases that have any. */
export function pingsSay({ idle, loadedDown, loadedUp, loadedBoth }: Figures): string {
  const known = told(
    [idle, (ms) => `${ms} ms ${WHEN.idle}`],
    [loadedDown, (ms) => `${ms} ms ${WHEN.down}`],
    [loadedUp, (ms) => `${ms} ms ${WHEN.up}`],
    [loadedBoth, (ms) => `${ms} ms ${WHEN.both}`],
  );
  return known === "" ? "No ping was answered in a phase." : `Half of the pings took no longer than ${known}.`;
}

/** What the chart of throughput shows, of the directions that carried something alone. */
export function ratesSay({ down, up }: Figures): string {
  const known = told(
    [down, (rate) => `the download carried ${rate} Mbit/s`],
    [up, (rate) => `the upload ${rate} Mbit/s`],
  );
  return known === "" ? "Nothing was loaded yet." : `Alone ${known.replace(/^the upload/, "the upload carried")}.`;
}

/** What is said of the numbers that are known, joined. */
function told(...parts: readonly (readonly [number, (text: string) => string])[]): string {
  const said = parts.flatMap(([value, say]) => (Number.isFinite(value) ? [say(shown(value))] : []));
  const last = said.pop() ?? "";
  return said.length > 0 ? `${said.join(", ")} and ${last}` : last;
}

/** When a ping of a phase was sent. */
export const WHEN: Record<Phase, string> = {
  idle: "on the idle line",
  down: "while downloading",
  up: "while uploading",
  both: "with both at once",
  rest: "between two loads",
};
