// Reads records and builds their charts.
import { closerOf } from "./closer";
import { firstOf, type PageData, type RecordData } from "./data";
import { button, el, toggle } from "./dom";
import { boxesOf, chartsOf, comparison, type Opened, type Section } from "./sections";
import { said, Tables } from "./tables";
import { kindsOf, View } from "./view";

/** A view of the whole of all records. */
export const viewOf = (records: RecordData[]) => new View({ from: 0, to: Math.max(...records.map((one) => one.reached_s), 0.001) });

/** Draws the charts of records in place of what `place` has; the sections that it then has. */
export async function draw(place: HTMLElement, { records, says }: PageData, view = viewOf(records)): Promise<Section[]> {
  const opened: Opened[] = [];
  const faults: HTMLElement[] = [];
  for (const [run, record] of records.entries()) {
    try {
      const tables = await Tables.of(await firstOf(record, run));
      opened.push({ record, run, tables, of: records.length > 1 ? record.name : "", closer: closerOf(record, run) });
    } catch (error) {
      faults.push(failed(record, error));
    }
  }
  // What was there stays until what comes is here.
  place.replaceChildren(...faults);
  performance.mark("weir-fetched");
  const sections: Section[] = [];
  const add = (heading: string, section: Section) => {
    place.append(el("h3", {}, heading), section.element);
    section.draw();
    sections.push(section);
  };
  const bar = el("div", { class: "bar", role: "toolbar", "aria-label": "Time and lines of all charts" });
  place.append(bar);
  try {
    if (opened.length > 1) add("All runs", await comparison(opened, says, view));
  } catch (error) {
    place.append(el("p", { class: "error", role: "alert" }, `The runs cannot be compared: ${said(error)}.`));
  }
  if (opened.length === 1) await addRecord(place, opened[0] as Opened, view, sections);
  else for (const one of opened) place.append(folded(one, view, sections));
  fillBar(bar, view, records);
  return sections;
}

/** The charts of one record, below each other. */
async function addRecord(place: HTMLElement, one: Opened, view: View, sections: Section[]): Promise<void> {
  place.append(el("h3", {}, one.record.name));
  try {
    const add = (section: Section) => {
      place.append(section.element);
      section.draw();
      sections.push(section);
    };
    // What a reader sees first is drawn while the rest is still read.
    await chartsOf(one, view, add);
    add(boxesOf(one));
  } catch (error) {
    place.append(failed(one.record, error));
  }
}

/** The charts of one of several records, which are made when they are first unfolded. */
function folded(one: Opened, view: View, sections: Section[]): HTMLElement {
  const place = el("div");
  const element = el("details", { class: "run" }, el("summary", {}, one.record.name), place);
  let made = false;
  element.addEventListener("toggle", () => {
    if (!element.open || made) return;
    made = true;
    void addRecord(place, one, view, sections);
  });
  return element;
}

function failed(record: RecordData, error: unknown): HTMLElement {
  return el("p", { class: "error", role: "alert" }, `\u201c${record.name}\u201d cannot be shown: ${said(error)}.`);
}

/** Time and filters of all charts. */
function fillBar(bar: HTMLElement, view: View, records: RecordData[]): void {
  const shown = el("span", { class: "shown", "aria-live": "off" });
  const modes = (["zoom", "mark"] as const).map((mode) =>
    button(mode === "zoom" ? "Drag zooms" : "Drag marks a span", () => view.drag(mode), { "data-mode": mode }),
  );
  const clear = button("Clear the mark", () => view.mark(null));
  const tell = () => {
    shown.textContent = `${view.shown.from.toFixed(2)} s to ${view.shown.to.toFixed(2)} s`;
    for (const one of modes) one.setAttribute("aria-pressed", String(one.dataset["mode"] === view.dragging));
    clear.disabled = view.marked === null;
  };
  view.listen(tell);
  tell();
  bar.append(
    button("Zoom in", () => view.zoom(0.5)),
    button("Zoom out", () => view.zoom(2)),
    button("Earlier", () => view.pan(-0.5)),
    button("Later", () => view.pan(0.5)),
    button("Whole run", () => view.reset()),
    ...modes,
    clear,
    shown,
  );
  const kinds = [...new Set(records.flatMap((one) => [...one.flows, ...one.probes]).flatMap(kindsOf))].sort();
  if (kinds.length > 1) {
    const filters: HTMLElement[] = kinds.map((kind) => {
      const name = FILTERS[kind] ?? kind.replace(/^service /, "");
      const what = kind.startsWith("service ") ? `Lines of the service class ${name} (DSCP)` : `Lines of the ${name.toLowerCase()}`;
      return toggle(name, true, (on) => view.filter(kind, on), { title: what });
    });
    const classes = kinds.findIndex((kind) => kind.startsWith("service "));
    if (classes >= 0) filters.splice(classes, 0, el("span", { class: "quiet" }, "Service classes"));
    bar.append(el("span", { class: "filters", role: "group", "aria-label": "Lines that are shown" }, ...filters));
  }
}

/** Draws anew when the window, the colours or the medium change. */
export function keepUp(sections: Section[]): void {
  const draw = (now = false) => {
    for (const section of sections) section.draw(now);
  };
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) requestAnimationFrame(() => draw());
    width = innerWidth;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  const root = document.documentElement;
  addEventListener("beforeprint", () => {
    root.classList.add("printing");
    draw(true);
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    draw();
  });
}

const FILTERS: Record<string, string> = { "direction down": "Download", "direction up": "Upload" };
