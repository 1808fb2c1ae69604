// Reads records and builds their charts.
import { closerOf } from "./closer";
import { firstOf, type PageData, type RecordData } from "./data";
import { el, prose, said } from "./dom";
import { boxesOf, chartsOf, comparison, type Opened, type Section } from "./sections";
import { Tables } from "./tables";
import { fillBar } from "./toolbar";
import { View } from "./view";

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
  if (opened.length === 1 && sections.length === 0) bar.replaceWith(el("p", {}, "Nothing was measured that a chart could show."));
  else fillBar(bar, view, records.flatMap((one) => [...one.flows, ...one.probes]));
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
    const spread = boxesOf(one);
    if (spread.element.hasChildNodes()) add(spread);
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
  return el("p", { class: "error", role: "alert" }, ...prose(`\u201c${record.name}\u201d cannot be shown: ${said(error)}.`));
}
