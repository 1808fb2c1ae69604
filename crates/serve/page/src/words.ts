// What figures mean, in plain words. Pure.

import type { Grade } from "./statistics.js";

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

/** What a latency under load allows: bounds in ms of round trip. */
export function uses(loadedMs: number, limited: boolean): string[] {
  const when = limited ? "under such a load" : "while the line is busy";
  return USES.map(([what, good, bearable]) => {
    const how = loadedMs <= good ? "fine" : loadedMs <= bearable ? "noticeably worse" : "poor";
    return `${what} ${when}: ${how}`;
  });
}

/**
 * Round trips under which something is good, and bearable. Calls: ITU-T G.114 has 150 ms one way as good and
 * 400 ms as the limit. Games: what players call playable. Pages: a few round trips each.
 */
const USES: readonly (readonly [string, number, number])[] = [
  ["Calls", 150, 300],
  ["Fast games", 60, 120],
  ["Web pages", 200, 500],
];
