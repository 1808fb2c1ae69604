// The controls: a slider and a number for each quantity, words for queue and congestion control.
import { el } from "../dom";
import { short } from "../statistics";
import { type Bounds, BOUNDS, emptied, fitting, type Numeric, PRESETS, type PresetName, type State } from "./state";

/** The controls of the page; `changed` is called after each change of theirs. */
export class Controls {
  readonly element: HTMLElement;
  private readonly numbers = new Map<Numeric, NumberControl>();
  private readonly preset = select("preset", Object.entries(PRESETS).map(([name, { title }]) => [name, title]));
  private readonly about = el("p", { class: "quiet" });
  private readonly cc = select("cc", []);
  private readonly ecn = el("input", { type: "checkbox", id: "ecn" });
  private readonly choice = select("queue-choice", [...QUEUES, [OTHER, "other words of tc"]]);
  private readonly queue = el("input", { type: "text", id: "queue", spellcheck: "false", autocomplete: "off", maxlength: "500" });

  constructor(
    private state: State,
    private readonly changed: (state: State, isPreset: boolean) => void,
  ) {
    this.element = el("form", { class: "controls", "aria-label": "What is simulated" });
    this.element.addEventListener("submit", (event) => event.preventDefault());
    const number = (key: Numeric, label: string, unit: string) => {
      const made = new NumberControl(key, label, unit, (value) => this.say({ [key]: value }));
      this.numbers.set(key, made);
      return made.element;
    };
    this.element.append(
      group("Line", labelled("preset", "Line to begin with", this.preset), this.about, number("down", "Download rate", "Mbit/s"),
        number("up", "Upload rate", "Mbit/s"), number("rtt", "Round trip when idle", "ms"),
        number("downBuffer", "Buffer, download", "kB"), number("upBuffer", "Buffer, upload", "kB")),
      group("Queue", labelled("queue-choice", "Queue", this.choice), labelled("queue", "Queue in the words of tc", this.queue)),
      group("Load", number("downloads", "Downloads at once", ""), number("uploads", "Uploads at once", ""),
        labelled("cc", "Congestion control", this.cc), el("div", { class: "control tick" }, this.ecn, el("label", { for: "ecn" }, "ECN"))),
      group("Run", number("load", "Length of the load", "s"), number("seed", "Seed", "")),
    );
    this.preset.addEventListener("change", () => {
      this.state = { preset: this.preset.value as PresetName, ...PRESETS[this.preset.value as PresetName].values };
      this.show(this.state);
      this.changed(this.state, true);
    });
    this.cc.addEventListener("change", () => this.say({ cc: this.cc.value }));
    this.ecn.addEventListener("change", () => this.say({ ecn: this.ecn.checked }));
    this.choice.addEventListener("change", () => {
      if (this.choice.value === OTHER) this.queue.focus();
      else this.say({ queue: this.choice.value });
    });
    this.queue.addEventListener("input", () => this.say({ queue: this.queue.value.trim() || "default" }));
    this.show(state);
  }

  /** Shows a state; the words of `tc` are left alone while somebody writes them. */
  show(state: State): void {
    this.state = state;
    const { about, without } = PRESETS[state.preset];
    this.preset.value = state.preset;
    this.about.textContent = about;
    this.cc.value = state.cc;
    this.ecn.checked = state.ecn;
    this.choice.value = QUEUES.some(([words]) => words === state.queue) ? state.queue : OTHER;
    if (document.activeElement !== this.queue) this.queue.value = state.queue;
    for (const [key, control] of this.numbers) control.show(state, !without.includes(key));
  }

  /** Offers the congestion controls that the simulator has. */
  offer(names: string[]): void {
    const all = names.includes(this.state.cc) ? names : [...names, this.state.cc];
    this.cc.replaceChildren(...all.map((name) => el("option", { value: name }, name)));
    this.cc.value = this.state.cc;
  }

  private say(part: Partial<State>): void {
    this.state = { ...this.state, ...part };
    this.show(this.state);
    this.changed(this.state, false);
  }
}

/** A slider, and a field for the same number. */
class NumberControl {
  readonly element: HTMLElement;
  private readonly slider: HTMLInputElement;
  private readonly field: HTMLInputElement;
  private readonly note = el("span", { class: "quiet" });
  private readonly label: HTMLElement;
  private readonly bounds: Bounds;
  private value = 0;

  constructor(
    private readonly key: Numeric,
    private readonly title: string,
    private readonly unit: string,
    said: (value: number) => void,
  ) {
    this.bounds = BOUNDS[key];
    const { min, max, log, whole } = this.bounds;
    const range = log ? { min: "0", max: String(STEPS), step: "1" } : { min: String(min), max: String(max), step: "1" };
    this.slider = el("input", { type: "range", ...range });
    this.field = el("input", { type: "number", id: key, min: String(min), max: String(max), step: whole ? "1" : "any" });
    this.slider.addEventListener("input", () => said(this.moved(Number(this.slider.value))));
    this.field.addEventListener("change", () => {
      const value = this.field.value === "" ? null : fitting(Number(this.field.value), this.bounds);
      if (value !== null) said(value);
      // The run goes on with the number that was there.
      else this.field.value = String(this.value);
    });
    this.label = el("label", { for: key });
    this.element = el("div", { class: "control" }, this.label, this.slider, this.field, this.note);
  }

  show(state: State, isUsed: boolean): void {
    this.element.hidden = !isUsed;
    const value = (this.value = state[this.key]);
    const unit = this.unit === "kB" && state.preset === "lte" ? "packets" : this.unit;
    this.label.textContent = unit ? `${this.title}, ${unit}` : this.title;
    this.slider.setAttribute("aria-label", `${this.label.textContent}: slider`);
    this.slider.value = String(this.placeOf(value));
    this.slider.setAttribute("aria-valuetext", `${value} ${unit}`);
    if (document.activeElement !== this.field || Number(this.field.value) !== value) this.field.value = String(value);
    this.note.textContent = this.key.endsWith("Buffer") ? noteOf(state, this.key) : "";
  }

  /** The number that a slider says that was moved to a place: another one, even where places lie closer than whole numbers. */
  private moved(place: number): number {
    const value = this.valueAt(place);
    if (value !== this.value || !this.bounds.whole) return value;
    return fitting(value + Math.sign(place - this.placeOf(value)), this.bounds) ?? value;
  }

  /** The number at a place of the slider, with three digits. */
  private valueAt(place: number): number {
    const { min, max, log, whole } = this.bounds;
    if (!log) return place;
    const value = Number((min * (max / min) ** (place / STEPS)).toPrecision(3));
    return fitting(whole ? Math.round(value) : value, this.bounds) ?? min;
  }

  private placeOf(value: number): number {
    const { min, max, log } = this.bounds;
    return log ? Math.round((STEPS * Math.log(value / min)) / Math.log(max / min)) : value;
  }
}

/** What a buffer's size means: for how long a packet waits behind a full one. */
function noteOf(state: State, key: Numeric): string {
  if (state.preset === "lte") return "";
  const rate = key === "downBuffer" ? state.down : state.up;
  return `${short(emptied(state[key], rate))} ms when full`;
}

function select(id: string, options: [string, string][]): HTMLSelectElement {
  return el("select", { id }, ...options.map(([value, title]) => el("option", { value }, title)));
}

function labelled(id: string, label: string, control: HTMLElement): HTMLElement {
  return el("div", { class: "control" }, el("label", { for: id }, label), control);
}

function group(title: string, ...children: Node[]): HTMLElement {
  return el("fieldset", {}, el("legend", {}, title), ...children);
}

/** Queues that many ask for, as `tc` has them. */
const QUEUES: [string, string][] = [
  ["default", "the line's own"],
  ["fq_codel", "fq_codel alone"],
  ["htb rate 95% fq_codel", "shaper at 95 % with fq_codel"],
  ["cake bandwidth 95%", "cake at 95 %"],
  ["htb rate 95% pfifo_fast", "shaper at 95 % with pfifo_fast"],
  ["htb rate 95% codel", "shaper at 95 % with codel"],
  ["htb rate 95% pie", "shaper at 95 % with pie"],
  ["htb rate 95% red limit 100000 avpkt 1000", "shaper at 95 % with red"],
];

const OTHER = "\u2026";

/** Places of a slider that moves by factors: each is 1 % or so. */
const STEPS = 500;
