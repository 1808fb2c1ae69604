// The page: one button, and what comes of it.

import { keep as keepFile } from "../../../../viewer/src/save";
import { Charts } from "./charts.js";
import { forget, keep, kept } from "./history.js";
import { cautions, judgement, limited } from "./grading.js";
import { measure, Stopped } from "./measure.js";
import { asCsv, asJson, decoded, encoded, type Result } from "./result.js";
import type { Loaded } from "./plan.js";
import { type Figures, upTo } from "./samples.js";
import { SecretNeeded } from "./session.js";
import { shown } from "./statistics.js";
import { felt, words } from "./words.js";

const element = <T extends Element>(id: string, kind: new () => T): T => {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
};
const button = element("button", HTMLButtonElement);
const secret = element("secret", HTMLInputElement);
const progress = element("progress", HTMLProgressElement);
const status = element("status", HTMLElement);

/** Ends the test that runs. */
let running: AbortController | null = null;
/** The result that the page shows. */
let present: Result | null = null;

element("start", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  if (running) running.abort(new Stopped());
  else void run();
});

const charts = new Charts(element("charts", HTMLElement));

element("link", HTMLButtonElement).addEventListener("click", () => void link());
element("json", HTMLButtonElement).addEventListener("click", () => present && save(asJson(present), "application/json", "json"));
element("csv", HTMLButtonElement).addEventListener("click", () => present && save(asCsv(present), "text/csv", "csv"));
element("forget", HTMLButtonElement).addEventListener("click", () => {
  forget();
  void list();
});
addEventListener("hashchange", () => void fromLink());
void list();
void fromLink();

/** Shows the result that the address carries, if it does. */
async function fromLink(): Promise<void> {
  const [, text] = /^#r=(.+)$/.exec(location.hash) ?? [];
  if (text === undefined || running) return;
  const result = await decoded(text);
  if (result === null) status.textContent = "The link carries no result that can be read.";
  else reveal(result, `A result of ${dateOf(result)}, from a link.`);
}

/** Shows a result that was not measured now. */
function reveal(result: Result, says: string): void {
  present = result;
  tell(result.figures);
  const unknown = judge(result.figures);
  progress.hidden = true;
  status.textContent = unknown === null ? says : `${says} ${unknown}`;
}

/** Puts the result into the address of the page, and copies that where a browser lets it. */
async function link(): Promise<void> {
  if (present === null) return;
  history.replaceState(null, "", `#r=${await encoded(present)}`);
  const told = element("told", HTMLElement);
  try {
    await navigator.clipboard.writeText(location.href);
    told.textContent = "The link is copied: it carries the result in itself.";
  } catch {
    told.textContent = "The address of this page now carries the result: copy it from there.";
  }
}

const save = (text: string, type: string, ending: string) => keepFile(new Blob([text], { type }), `weir-result.${ending}`);

/** Lists the results that this browser keeps. */
async function list(): Promise<void> {
  const results = await kept();
  const items = results.map((result) => {
    const { down, up } = result.figures;
    const found = judgement(result.figures);
    const open = document.createElement("button");
    open.type = "button";
    open.textContent = dateOf(result);
    open.addEventListener("click", () => !running && reveal(result, `A result of ${dateOf(result)}, which this browser has kept.`));
    const item = document.createElement("li");
    const said = "why" in found ? ["no grade", ""] : [`grade ${found.letter}${limited(result.figures) ? " at the server's limit" : ""}`, `, round trips ${shown(found.increase)} ms longer`];
    item.append(open, ` ${said[0]}, ${shown(down)} Mbit/s down, ${shown(up)} up${said[1]}`);
    return item;
  });
  element("results", HTMLUListElement).replaceChildren(...items);
  element("history", HTMLElement).hidden = results.length === 0;
}

const dateOf = ({ at }: Result) => new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

async function run(): Promise<void> {
  const test = new AbortController();
  running = test;
  present = null;
  let known: Figures | null = null;
  button.textContent = "Stop";
  // What stands there is of another test, and this one may never begin.
  element("result", HTMLElement).hidden = true;
  element("live", HTMLElement).hidden = true;
  charts.clear();
  element("told", HTMLElement).textContent = "";
  // What the address carries is no longer what the page shows.
  if (location.hash) history.replaceState(null, "", location.pathname);
  status.textContent = "Connecting …";
  try {
    const figures = await measure(secret.value, (so_far) => show((known = so_far)), test.signal);
    tell(figures);
    status.textContent = judge(figures) ?? "Done.";
    present = { at: Date.now(), figures };
    await keep(present);
    await list();
  } catch (error) {
    status.textContent = whyEnded(error);
    // What was measured until then stays, without a grade.
    if (known) charts.open(upTo(known));
  } finally {
    running = null;
    progress.hidden = true;
    button.textContent = "Start again";
  }
}

function whyEnded(error: unknown): string {
  if (error instanceof Stopped) return "Stopped: what was measured until then has no grade.";
  if (!(error instanceof SecretNeeded)) return error instanceof Error ? error.message : String(error);
  element("secret-row", HTMLElement).hidden = false;
  secret.focus();
  return "This server asks for its secret.";
}

/** What is known while the test runs. */
function show(figures: Figures): void {
  if (progress.hidden) charts.begin();
  tell(figures);
  progress.hidden = false;
  progress.value = Math.min(figures.t / (figures.phases.at(-1)?.to ?? figures.t), 1);
  status.textContent = DOING[figures.phase];
  charts.grow(figures);
}

function tell(figures: Figures): void {
  element("live", HTMLElement).hidden = false;
  for (const [id, value] of [
    ["down", figures.down],
    ["up", figures.up],
    ["idle", figures.idle],
    ["loaded-down", figures.loadedDown],
    ["loaded-up", figures.loadedUp],
    ["loaded-both", figures.loadedBoth],
  ] as const) {
    element(id, HTMLOutputElement).textContent = shown(value);
  }
  element("idle-mean", HTMLElement).textContent = shown(figures.idleMean);
  for (const way of ["down", "up", "both"] as const) {
    const more = figures.increases[way];
    element(`more-${way}`, HTMLElement).textContent = shown(Math.max(more, 0));
  }
}

/** Says what figures mean; returns why not where they tell nothing. */
function judge(figures: Figures): string | null {
  const { increases } = figures;
  const found = judgement(figures);
  charts.open(figures);
  element("result", HTMLElement).hidden = "why" in found;
  if ("why" in found) return found.why;
  const { letter } = found;
  const atLimit = limited(figures);
  const said = words(letter, atLimit);
  const mark = element("grade", HTMLElement);
  mark.textContent = letter;
  mark.className = `grade ${said.colour}`;
  element("verdict", HTMLElement).textContent = said.verdict;
  element("meaning", HTMLElement).textContent =
    `A round trip takes on average ${longer(increases)}. ${said.meaning}`;
  element("felt", HTMLElement).textContent = felt(letter, atLimit);
  element("advice", HTMLElement).textContent = said.advice;
  element("caveat", HTMLElement).textContent = cautions(figures).join(" ");
  return null;
}

/** By how much round trips are longer in each phase. */
function longer(increases: Record<Loaded, number>): string {
  const ms = (value: number) => `${shown(Math.max(value, 0))} ms longer`;
  return `${ms(increases.down)} while downloading, ${ms(increases.up)} while uploading and ${ms(increases.both)} with both at once`;
}

const DOING = {
  idle: "Measuring the idle line …",
  down: "Downloading …",
  up: "Uploading …",
  both: "Downloading and uploading …",
  rest: "Letting the line come to rest …",
} as const;
