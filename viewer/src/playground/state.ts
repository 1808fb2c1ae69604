// What the page's controls say, as a scenario that `weir run` takes too, and as a link to the page.

/** What the controls say. */
export interface State {
  preset: PresetName;
  /** Rates in Mbit/s. */
  down: number;
  up: number;
  /** Round trip of the idle line in ms, both ways together. */
  rtt: number;
  /** Buffers of the devices at the line in kB, or in packets where the line is a recording. */
  downBuffer: number;
  upBuffer: number;
  /** How many TCP flows load each direction. */
  downloads: number;
  uploads: number;
  cc: string;
  ecn: boolean;
  /** Queue spec in `tc` syntax, `default` for the link's own. */
  queue: string;
  /** Length of the load in s. */
  load: number;
  seed: number;
}

export type Numeric = { [Key in keyof State]: State[Key] extends number ? Key : never }[keyof State];

/** Bounds of a number that a slider sets. */
export interface Bounds {
  min: number;
  max: number;
  /** Whether the slider moves by factors: its range spans orders of magnitude. */
  log: boolean;
  whole: boolean;
}

export const BOUNDS: Record<Numeric, Bounds> = {
  down: { min: 0.1, max: 1000, log: true, whole: false },
  up: { min: 0.1, max: 1000, log: true, whole: false },
  rtt: { min: 1, max: 1000, log: true, whole: false },
  downBuffer: { min: 3, max: 20_000, log: true, whole: true },
  upBuffer: { min: 3, max: 20_000, log: true, whole: true },
  downloads: { min: 0, max: 32, log: false, whole: true },
  uploads: { min: 0, max: 32, log: false, whole: true },
  load: { min: 1, max: 60, log: false, whole: true },
  seed: { min: 0, max: 9_999_999, log: false, whole: true },
};

export type PresetName = "cable" | "vdsl" | "vdsl-shaped" | "lte" | "thesis";

/** A shipped link, and what the controls say when it is chosen. */
export interface Preset {
  title: string;
  /** What its line is called, whichever queue is on it. */
  line: string;
  /** Name of the shipped link whose hops it has. */
  link: string;
  about: string;
  values: Omit<State, "preset">;
  /** Controls that say nothing about this line. */
  without: Numeric[];
}

/** The numbers of a line, as its name tells them. */
const LINE_WORDS: [Numeric, string, string][] = [
  ["down", "download", "Mbit/s"],
  ["up", "upload", "Mbit/s"],
  ["rtt", "round trip", "ms"],
  ["downBuffer", "download buffer", "kB"],
  ["upBuffer", "upload buffer", "kB"],
];

const COMMON = { downloads: 4, uploads: 4, cc: "cubic", ecn: false, queue: "default", load: 15, seed: 1 };

export const PRESETS: Record<PresetName, Preset> = {
  cable: {
    title: "Cable 20/8",
    line: "Cable 20/8",
    link: "cable-20-8",
    about: "A home router in front of a cable modem whose buffers are far too large.",
    values: { ...COMMON, down: 20, up: 8, rtt: 14, downBuffer: 625, upBuffer: 250 },
    without: [],
  },
  vdsl: {
    title: "VDSL-100, without a shaper",
    line: "VDSL-100",
    link: "vdsl-100-40",
    about: "A home router in front of a VDSL2 modem, with one download and one upload.",
    values: { ...COMMON, down: 109.341, up: 40.143, rtt: 9, downBuffer: 264, upBuffer: 560, downloads: 1, uploads: 1 },
    without: [],
  },
  "vdsl-shaped": {
    title: "VDSL-100, with a shaper",
    line: "VDSL-100",
    link: "vdsl-100-40",
    about: "The same line with a shaper at 95 % of its rate in the router, and fq_codel beneath it.",
    values: {
      ...COMMON,
      down: 109.341,
      up: 40.143,
      rtt: 9,
      downBuffer: 264,
      upBuffer: 560,
      downloads: 1,
      uploads: 1,
      queue: "htb rate 95% fq_codel",
    },
    without: [],
  },
  lte: {
    title: "LTE, as recorded",
    line: "LTE, as recorded",
    link: "lte-verizon",
    about: "A recorded cellular line, whose rate changes all the time. The queue sits at the bottleneck itself.",
    values: { ...COMMON, down: 9, up: 6, rtt: 40, downBuffer: 1000, upBuffer: 1000, downloads: 1, uploads: 1 },
    without: ["down", "up"],
  },
  thesis: {
    title: "The thesis' bottleneck",
    line: "The thesis' bottleneck",
    link: "thesis-10",
    about: "10 Mbit/s behind 100 Mbit/s, with a round trip of 200 ms. The queue under test sits at the bottleneck.",
    values: { ...COMMON, down: 10, up: 100, rtt: 200, downBuffer: 1000, upBuffer: 1000, downloads: 4, uploads: 0, cc: "reno" },
    without: ["up", "uploads", "upBuffer"],
  },
};

/** The state in which a preset begins. */
export const begun = (preset: PresetName): State => ({ preset, ...PRESETS[preset].values });

/** What the line of a state is called: that of its preset, with every number of it that is another. */
export function lineOf(state: State): string {
  const { line, values, without } = PRESETS[state.preset];
  const others = LINE_WORDS.filter(([key]) => !without.includes(key) && state[key] !== values[key]);
  const told = others.map(([key, word, unit]) => `${word} ${state[key]} ${unit === "kB" && state.preset === "lte" ? "packets" : unit}`);
  return told.length > 0 ? `${line} with ${told.join(", ")}` : line;
}

/** What a run is called: its line, its queue, and what of its load is not as in the preset. */
export function nameOf(state: State): string {
  const { values } = PRESETS[state.preset];
  const queue = state.queue === "default" ? "the line's own queue" : state.queue;
  const flows = (count: number, word: string) => `${count} ${word}${count === 1 ? "" : "s"}`;
  const others = [
    state.downloads !== values.downloads && flows(state.downloads, "download"),
    state.uploads !== values.uploads && flows(state.uploads, "upload"),
    state.cc !== values.cc && state.cc,
    state.ecn !== values.ecn && (state.ecn ? "ECN" : "no ECN"),
    state.load !== values.load && `${state.load} s of load`,
    state.seed !== values.seed && `seed ${state.seed}`,
  ];
  return [lineOf(state), queue, ...others.filter((one) => one !== false)].join(", ");
}

/** The scenario of a state, in TOML. */
export function scenarioText(state: State): string {
  const flows = [flowText("download", "down", state.downloads), flowText("upload", "up", state.uploads)];
  return `${[
    `# Made in Weir's playground. Run it with: weir run playground.toml`,
    `queue = [${quoted(state.queue)}]`,
    `cc = ${quoted(state.cc)}`,
    `seed = ${state.seed}`,
    `tcp = { ecn = ${state.ecn} }`,
    "",
    "[test]",
    `name = "playground"`,
    `title = "TCP both ways, with a ping"`,
    `phases = { idle = "2s", load = "${state.load}s", cooldown = "1s" }`,
    ...flows.filter((text) => text !== ""),
    "",
    "[[test.probes]]",
    `name = "Ping"`,
    `kind = "icmp"`,
    "",
    "[link]",
    `name = "playground"`,
    `title = ${quoted(lineOf(state))}`,
    ...LINES[state.preset](state),
  ].join("\n")}\n`;
}

/** Words for a shell that run a scenario. */
export function commandText(scenario: string): string {
  const text = scenario.endsWith("\n") ? scenario : `${scenario}\n`;
  // No line of the text can end it.
  let end = "END";
  while (text.split("\n").includes(end)) end += "_";
  return `cat > playground.toml <<'${end}'\n${text}${end}\nweir run playground.toml\n`;
}

/** The state as the part of an address behind `#`: what differs from its preset. */
export function linkOf(state: State): string {
  const words = new URLSearchParams({ preset: state.preset });
  const usual = begun(state.preset);
  for (const key of Object.keys(usual) as (keyof State)[]) {
    if (state[key] !== usual[key]) words.set(key, String(state[key]));
  }
  return `#${words}`;
}

/** The state that an address says; what it does not say, or says wrongly, is as in its preset. */
export function stateOf(address: string): State {
  const words = new URLSearchParams(address.replace(/^#/, ""));
  const named = words.get("preset") ?? "";
  const state = begun(Object.hasOwn(PRESETS, named) ? (named as PresetName) : "cable");
  const { without } = PRESETS[state.preset];
  for (const key of Object.keys(BOUNDS) as Numeric[]) {
    // What the page has no control for nobody could take back.
    if (without.includes(key)) continue;
    const said = words.get(key);
    // An empty text would be 0 as a number.
    if (said?.trim()) state[key] = fitting(Number(said), BOUNDS[key]) ?? state[key];
  }
  state.queue = words.get("queue")?.trim().slice(0, MAX_WORDS) || state.queue;
  state.cc = words.get("cc")?.trim().slice(0, 40) || state.cc;
  state.ecn = (words.get("ecn") ?? String(state.ecn)) === "true";
  return state;
}

/** A number within its bounds; null if it is none. */
export function fitting(value: number, { min, max, whole }: Bounds): number | null {
  if (!Number.isFinite(value)) return null;
  const bounded = Math.min(Math.max(value, min), max);
  return whole ? Math.round(bounded) : bounded;
}

/** How long a buffer in kB takes to empty at a rate in Mbit/s: ms. */
export const emptied = (kilobytes: number, mbps: number) => (kilobytes * 8) / mbps;

function flowText(name: string, direction: string, count: number): string {
  if (count === 0) return "";
  return `\n[[test.flows]]\nname = "TCP ${name}"\ndirection = "${direction}"\ncount = ${count}`;
}

/** The hops of each line: those of the shipped link, with the numbers of the state. */
const LINES: Record<PresetName, (state: State) => string[]> = {
  cable: (state) => access(state, "cmts", "docsis"),
  vdsl: (state) => access(state, "dslam", "ptm"),
  "vdsl-shaped": (state) => access(state, "dslam", "ptm"),
  lte: ({ rtt, downBuffer, upBuffer }) => [
    ...recorded("up", "handset", "Verizon-LTE-short.up", upBuffer, rtt),
    ...recorded("down", "basestation", "Verizon-LTE-short.down", downBuffer, rtt),
  ],
  thesis: ({ down, rtt, downBuffer }) => [
    ...hop("down", "r0", ['queue = "bfifo limit 1000000"', 'rate = "100mbit"']),
    ...hop("down", "r1", ['place = "queue"', `queue = "bfifo limit ${bytes(downBuffer)}"`, `rate = "${bits(down)}bit"`]),
    ...hop("up", "d", ['queue = "bfifo limit 1000000"', 'rate = "100mbit"', `delay = "${nanoseconds(rtt)}ns"`]),
  ],
};

/** An access line: a home router, where the queue goes, in front of a modem, and the device at the other end. */
function access({ down, up, rtt, downBuffer, upBuffer }: State, far: string, framing: string): string[] {
  const router = ['place = "queue"', 'queue = "pfifo_fast"', 'rate = "1gbit"', 'framing = "ethernet"'];
  const line = (rate: number, buffer: number) => [
    `queue = "bfifo limit ${bytes(buffer)}"`,
    `rate = "${bits(rate)}bit"`,
    `framing = "${framing}"`,
    `delay = "${nanoseconds(rtt / 2)}ns"`,
  ];
  return [
    ...hop("up", "router", router),
    ...hop("up", "modem", line(up, upBuffer)),
    ...hop("down", far, line(down, downBuffer)),
    ...hop("down", "router", router),
  ];
}

function recorded(direction: string, name: string, trace: string, packets: number, rtt: number): string[] {
  const words = ['place = "queue"', `queue = "pfifo limit ${packets}"`, `trace = "${trace}"`, `delay = "${nanoseconds(rtt / 2)}ns"`];
  return hop(direction, name, words);
}

const hop = (direction: string, name: string, words: string[]) => ["", `[[link.${direction}]]`, `name = "${name}"`, ...words];

const bits = (mbps: number) => Math.round(mbps * 1e6);
const bytes = (kilobytes: number) => Math.round(kilobytes * 1e3);
const nanoseconds = (ms: number) => Math.round(ms * 1e6);

/** A text in quotes, as TOML has it; in a single line whatever it says. */
function quoted(text: string): string {
  // biome-ignore lint: control characters are not allowed in TOML
  return JSON.stringify(text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\ud800-\udfff]/g, " "));
}

/** A queue spec is no longer. */
const MAX_WORDS = 500;
