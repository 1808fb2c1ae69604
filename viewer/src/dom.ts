// Making elements. All text is set as text: what a record says is never read as markup.

type Child = Node | string | null;

/** `text` in which signs that steer, such as those that turn the direction of writing, are written out, as Weir's terminal does. */
export function writtenOut(text: string): string {
  return text.replaceAll(STEERING, (sign) => {
    const code = sign.charCodeAt(0);
    return SHORT[sign] ?? (code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`);
  });
}

/** An element with attributes and children. */
export function el<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** A button that does `action`. */
export function button(label: string, action: () => void, attributes: Record<string, string> = {}): HTMLButtonElement {
  const made = el("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", action);
  return made;
}

/** A button that is on or off. */
export function toggle(
  label: string,
  on: boolean,
  action: (on: boolean) => void,
  attributes: Record<string, string> = {},
): HTMLButtonElement {
  const made = button(label, () => {
    const now = made.getAttribute("aria-pressed") !== "true";
    made.setAttribute("aria-pressed", String(now));
    action(now);
  }, attributes);
  made.setAttribute("aria-pressed", String(on));
  return made;
}

/** Switches a button off or on. One that has the focus keeps it while it is off: the next Tab goes on from there. */
export function switchOff(one: HTMLButtonElement, off: boolean): void {
  const isHeld = off && document.activeElement === one;
  one.disabled = off && !isHeld;
  if (isHeld) one.setAttribute("aria-disabled", "true");
  else one.removeAttribute("aria-disabled");
  if (!isHeld || guarded.has(one)) return;
  guarded.add(one);
  one.addEventListener("click", (event) => {
    if (!isOff(one)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, { capture: true });
  one.addEventListener("blur", () => isOff(one) && switchOff(one, true));
}

const isOff = (one: HTMLButtonElement) => one.getAttribute("aria-disabled") === "true";
/** Buttons that have been off while they had the focus. */
const guarded = new WeakSet<HTMLButtonElement>();

/** A sentence with what stands in backticks as code. */
export function prose(text: string): Node[] {
  return writtenOut(text).split(/`([^`]+)`/).map((part, at) => (at % 2 ? el("code", {}, part) : document.createTextNode(part)));
}

/** A command, of which no option is broken behind its dashes. */
export function asCommand(text: string): Node[] {
  return writtenOut(text)
    .split(/(?<!\S)(--?[A-Za-z][\w-]*)/)
    .map((part, at) => (at % 2 ? el("span", { class: "option" }, part) : document.createTextNode(part)));
}

/** What an error says, in one short line. */
export function said(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return writtenOut(text.replaceAll(/\s+/g, " ")).slice(0, 200);
}

/** A table with a caption; the first cell of each row is its heading. */
export function tableOf(caption: string, headings: string[], rows: string[][]): HTMLElement {
  const head = el("tr", {}, ...headings.map((text) => el("th", { scope: "col" }, text)));
  const body = rows.map((cells) =>
    el("tr", {}, ...cells.map((text, at) => (at ? el("td", {}, text) : el("th", { scope: "row" }, text)))),
  );
  const table = el("table", {}, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, ...body));
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption }, table);
}

/** Whether the page is on its way to paper. */
export const isPrinting = () => document.documentElement.classList.contains("printing");

/** How wide a picture in `place` may be, in pixels: on paper no wider than the sheet. */
export const roomOf = (place: HTMLElement) => Math.min(place.clientWidth, isPrinting() ? PAPER : Infinity);

/** The width in pixels of what a sheet of A4 or letter has room for. */
const PAPER = 680;

/**
 * Does `task` once nothing more was asked for a while and the browser has nothing else to do, one such task at a time; `task` says
 * whether there was anything to do.
 */
export function idly(task: () => boolean): void {
  tasks.push(task);
  clearTimeout(quiet);
  quiet = setTimeout(() => {
    quiet = undefined;
    goOn();
  }, QUIET_MS);
}

function goOn(): void {
  if (isAsked) return;
  isAsked = true;
  // Safari has no times of idleness.
  if ("requestIdleCallback" in window) requestIdleCallback(next);
  else setTimeout(next, IDLE_MS);
}

function next(): void {
  isAsked = false;
  // Who zooms or drags does not wait for it: it goes on when that is over.
  if (quiet !== undefined) return;
  let [at, worked] = [0, false];
  try {
    // Where a page is hardly ever idle, what is no longer to be done would pile up.
    while (!worked && at < tasks.length) worked = tasks[at++]?.() ?? false;
  } finally {
    tasks.splice(0, at);
    if (tasks.length > 0) goOn();
  }
}

const tasks: (() => boolean)[] = [];
let quiet: ReturnType<typeof setTimeout> | undefined;
let isAsked = false;
const QUIET_MS = 300;
const IDLE_MS = 50;

/** The present value of a colour of the style sheet. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The present value of the colour `number` of the palette, which begins again behind its last one. */
export const paletteColour = (number: number) => colour(`c${number % COLOURS}`);

/** As weirlab.errors has it: control characters but for the end of a line, and what turns the direction of writing. */
// biome-ignore lint: control characters are what is looked for
const STEERING = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const SHORT: Record<string, string> = { "\t": "\\t", "\r": "\\r" };

/** As many colours as the style sheet has, `--c0` and on. */
export const COLOURS = 6;
