// The page: one button, and what comes of it.

import { draw } from "./chart.js";
import { type Figures, LENGTH, type Loaded, measure } from "./measure.js";
import { SecretNeeded } from "./session.js";
import { grade, shown } from "./statistics.js";
import { uses, words } from "./words.js";

const element = <T extends Element>(id: string, kind: new () => T): T => {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
};
const button = element("button", HTMLButtonElement);
const secret = element("secret", HTMLInputElement);
const progress = element("progress", HTMLProgressElement);
const status = element("status", HTMLElement);

element("start", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  void run();
});

async function run(): Promise<void> {
  button.disabled = true;
  element("result", HTMLElement).hidden = true;
  status.textContent = "Connecting …";
  try {
    const figures = await measure(secret.value, show);
    show(figures);
    judge(figures);
    status.textContent = "Done.";
  } catch (error) {
    if (error instanceof SecretNeeded) {
      element("secret-row", HTMLElement).hidden = false;
      secret.focus();
      status.textContent = "This server asks for its secret.";
    } else {
      status.textContent = error instanceof Error ? error.message : String(error);
    }
  } finally {
    progress.hidden = true;
    button.disabled = false;
    button.textContent = "Start again";
  }
}

function show(figures: Figures): void {
  element("live", HTMLElement).hidden = false;
  progress.hidden = false;
  progress.value = Math.min(figures.t / LENGTH, 1);
  status.textContent = DOING[figures.phase];
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
  draw(element("chart", SVGSVGElement), figures.pings);
}

function judge(figures: Figures): void {
  const { increases } = figures;
  // Less than nothing is noise.
  const increase = Math.max(increases.down, increases.up, increases.both, 0);
  if (!Number.isFinite(increase)) {
    status.textContent = "No latency could be measured under load: the line may have been cut off.";
    return;
  }
  const letter = grade(increase);
  const said = words(letter);
  const mark = element("grade", HTMLElement);
  mark.textContent = letter;
  mark.className = `grade ${said.colour}`;
  element("verdict", HTMLElement).textContent = said.verdict;
  element("meaning", HTMLElement).textContent =
    `A round trip takes ${longer(increases)}. ${said.meaning}`;
  const worst = Math.max(figures.loadedDown, figures.loadedUp, figures.loadedBoth);
  const items = uses(worst).map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  });
  element("uses", HTMLUListElement).replaceChildren(...items);
  element("advice", HTMLElement).textContent = said.advice;
  element("caveat", HTMLElement).textContent = FAST_MBIT <= Math.max(figures.down, figures.up) ? BUSY_DEVICE : "";
  element("result", HTMLElement).hidden = false;
}

/** By how much round trips are longer in each phase. */
function longer(increases: Record<Loaded, number>): string {
  const ms = (value: number) => `${shown(Math.max(value, 0))} ms`;
  return (
    `${ms(increases.down)} longer while downloading, ${ms(increases.up)} while uploading and ` +
    `${ms(increases.both)} with both at once`
  );
}

const DOING = {
  idle: "Measuring the idle line …",
  down: "Downloading …",
  up: "Uploading …",
  both: "Downloading and uploading …",
  rest: "Letting the line come to rest …",
} as const;

/** Above this a browser itself may be what is busy. */
const FAST_MBIT = 1000;
const BUSY_DEVICE =
  "At such rates the browser itself may be the bottleneck, and part of the latency its own: `weir test` measures " +
  "without one.";
