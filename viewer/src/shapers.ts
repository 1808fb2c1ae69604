// The shapers of this machine, watched: what each says of itself, as numbers and over the last minutes.
import { ask } from "./asking";
import { Chart } from "./chart";
import { el, prose, said, tableOf } from "./dom";
import type { Line } from "./lines";
import type { Section } from "./sections";
import { keepUp } from "./toolbar";
import { View } from "./view";
import { HOW } from "./words";

/** What a shaper says, as `weirlab.shape.watching` has it. */
interface Seen {
  pid: number;
  t_s: number;
  title: string;
  headings: string[];
  rows: string[][];
  sides: { name: string; rate_mbps: number | null; load_mbps: number }[];
  delay_ms: number | null;
  remarks: string[];
  probed: string;
}

interface Answer {
  commands: string[];
  error?: string;
  seen?: Seen | null;
}

/** Watches all shapers as they come and go. */
export function shapers(prefix: string): void {
  const [place, count] = [document.getElementById("shapers"), document.getElementById("count")];
  const watched = new Map<string, Watched>();
  const sections: Section[] = [];
  keepUp(sections);
  const look = async () => {
    const { devices } = await ask<{ devices: string[] }>(`${prefix}/shapers/state`);
    say(devices.length === 0 ? "No interface is shaped." : devices.length === 1 ? "One interface is shaped." : `${devices.length} interfaces are shaped.`);
    for (const device of devices) {
      if (watched.has(device)) continue;
      const one = new Watched(device, () => ask<Answer>(`${prefix}/shaper/state?device=${encodeURIComponent(device)}`));
      watched.set(device, one);
      sections.push(one);
      place?.append(one.element);
    }
    for (const [device, one] of watched) one.isThere(devices.includes(device));
  };
  let last = "";
  const say = (text: string) => {
    // What is said again is not read aloud again.
    if (count !== null && text !== last) count.replaceChildren(...prose(text));
    last = text;
  };
  // One answer that does not come, as while a laptop sleeps, ends nothing.
  const again = () =>
    void look()
      .catch((error: unknown) => say(`${said(error)}.`))
      .then(() => setTimeout(again, LIST_MS));
  again();
}

/** One shaper: it is asked while it is there; what was seen of it stays when it ends. */
class Watched implements Section {
  readonly element: HTMLElement;
  private view = new View({ from: 0, to: SPAN_S });
  private readonly says = el("p", { role: "status" }, "Asking.");
  private readonly wrong = el("p", { class: "error", role: "alert", hidden: "" });
  private readonly remarks = el("div", { role: "group", "aria-label": "Remarks" });
  private readonly table = el("div", { class: "told" });
  private readonly commands: HTMLElement;
  private readonly place = el("div", { class: "charts" });
  private charts: Chart[] = [];
  private lines: Kept[] = [];
  private failure: string | undefined = undefined;
  private pid = 0;
  private reached = -1;
  private asking = false;
  private there = false;

  constructor(
    private readonly device: string,
    private readonly ask: () => Promise<Answer>,
  ) {
    this.commands = el("pre", { role: "region", tabindex: "0", "aria-label": `The commands for ${device}` });
    this.element = el(
      "section",
      { "aria-label": `Shaper of ${device}` },
      el("h2", {}, device),
      this.says,
      this.wrong,
      this.remarks,
      this.table,
      this.commands,
      el("h3", {}, "Over time"),
      el("p", { class: "quiet" }, "The charts keep what was seen since this page was opened, five minutes at most, and stand still while you point at them or move in them by keyboard."),
      this.place,
    );
  }

  draw(now = false): void {
    for (const chart of this.charts) chart.draw(now);
  }

  /** Takes note of whether the shaper is there. */
  isThere(there: boolean): void {
    if (this.there && !there) this.tell(`The shaper of ${this.device} has ended. What was last seen of it stands below.`);
    this.there = there;
    if (!there) this.fail(undefined);
    if (there && !this.asking) void this.follow();
  }

  /** Asks it again and again as long as it is there. */
  private async follow(): Promise<void> {
    this.asking = true;
    while (this.there) {
      try {
        const answer = await this.ask();
        if (this.there) this.take(answer);
      } catch (error) {
        this.fail(`${said(error)}.`);
      }
      await new Promise((resolve) => setTimeout(resolve, ASK_MS));
    }
    this.asking = false;
  }

  private take({ commands, error, seen }: Answer): void {
    this.commands.textContent = commands.join("\n");
    this.fail(error);
    if (error !== undefined) return this.tell("It does not say what it does.");
    if (!seen) return this.tell("It has shown nothing yet.");
    this.tell(`It shapes, as process ${seen.pid}; probes are answered by ${seen.probed}.`);
    this.remarks.replaceChildren(...seen.remarks.map((text) => el("p", { class: "warning" }, text)));
    const { headings, rows, title } = seen;
    // A column for each side: two fit on a phone, the nine of what is said of them do not.
    const [side = "", ...figures] = headings;
    const sides = rows.map(([name = ""]) => name);
    const made = tableOf(title, [side, ...sides], figures.map((name, at) => [name, ...rows.map((row) => row[at + 1] ?? "")]));
    // The frame that scrolls stays, and the focus in it.
    if (this.table.firstElementChild === null) {
      made.setAttribute("aria-label", `What the shaper of ${this.device} does`);
      this.table.append(made);
    } else this.table.firstElementChild.replaceChildren(...made.children);
    this.keep(seen);
  }

  /** Takes a view in. */
  private keep(seen: Seen): void {
    const names = seen.sides.map((side) => side.name).join();
    const known = this.lines.filter((one) => one.kind === "rate").map((one) => one.side).join();
    if (seen.pid !== this.pid || seen.t_s < this.reached || names !== known) this.begin(seen);
    // The same view as before has nothing new in it.
    if (seen.t_s <= this.reached) return;
    this.reached = seen.t_s;
    for (const one of this.lines) {
      const side = seen.sides.find((found) => found.name === one.side);
      const value = one.kind === "delay" ? seen.delay_ms : one.kind === "rate" ? side?.rate_mbps : side?.load_mbps;
      add(one.line, seen.t_s, value ?? NaN);
    }
    if (this.place.matches(":hover, :has(:focus-visible)")) return;
    const from = Math.max(this.lines[0]?.line.t[0] ?? 0, seen.t_s - SPAN_S);
    this.view.extend({ from, to: Math.max(seen.t_s, from + 1) });
  }

  /** Begins the charts anew, of another shaper than before. */
  private begin({ pid, sides }: Seen): void {
    [this.pid, this.reached] = [pid, -1];
    this.view = new View({ from: 0, to: SPAN_S });
    const base = { xLabel: "Time since the shaper's start, s", phases: [], of: this.device };
    this.lines = [];
    const line = (kind: Kept["kind"], side: string, label: string, colour: number, steps: boolean): Line => {
      const made = { name: label, label, run: 0, direction: "" as const, service: "", t: new Float64Array(), y: new Float64Array(), colour, steps };
      this.lines.push({ kind, side, line: made });
      return made;
    };
    this.charts = sides.map(({ name }) => {
      const lines = [line("rate", name, "rate", 0, true), line("load", name, "used", 1, false)];
      const title = TITLES[name] ?? name;
      return new Chart({ ...base, title, yLabel: "Mbit/s", how: HOW.shaping, shows: "The rate, and what uses it.", lines }, this.view);
    });
    const delay = [line("delay", "", "delay", 2, false)];
    this.charts.push(new Chart({ ...base, title: "Delay", yLabel: "ms", how: HOW.delay, shows: "The round trip that the shaper goes by.", lines: delay }, this.view));
    this.place.replaceChildren(...this.charts.map((chart) => chart.element));
  }

  private tell(text: string): void {
    // What is said again is not read aloud again.
    if (this.says.textContent !== text) this.says.textContent = text;
  }

  private fail(text: string | undefined): void {
    this.wrong.hidden = text === undefined;
    if (this.failure !== text) this.wrong.replaceChildren(...prose(text ?? ""));
    this.failure = text;
  }
}

/** A line that grows. */
interface Kept {
  kind: "rate" | "load" | "delay";
  side: string;
  line: Line;
}

/** Adds a value to a line, and forgets what is older than is kept. */
function add(line: Line, time: number, value: number): void {
  const first = line.t.findIndex((one) => one >= time - SPAN_S);
  const start = first < 0 ? line.t.length : first;
  line.t = Float64Array.of(...line.t.subarray(start), time);
  line.y = Float64Array.of(...line.y.subarray(start), value);
}

const TITLES: Record<string, string> = { up: "Upload", down: "Download" };
/** How much is kept, in seconds. */
const SPAN_S = 300;
/** Between two questions to a shaper, and between two looks at which there are. */
const [ASK_MS, LIST_MS] = [500, 1000];
