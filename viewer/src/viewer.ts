// The page of a report: draws the charts of the records that it was given, and offers their raw data.
import { draw, keepUp, viewOf } from "./charts";
import { archiveOf, pageData, type RecordData } from "./data";
import { button, el } from "./dom";
import { keep } from "./save";
import type { Section } from "./sections";
import { said } from "./tables";
import type { View } from "./view";

async function begin(): Promise<void> {
  const place = document.getElementById("weir-charts");
  if (place === null) return;
  const data = pageData();
  downloads(data.records);
  const view = viewOf(data.records);
  if (data.marked !== undefined) view.mark({ from: data.marked[0], to: Math.min(data.marked[1], view.all.to) });
  const sections = await draw(place, data, view);
  keepUp(sections);
  if (data.rest !== undefined) await complete(place, data.rest, view, sections);
  performance.mark("weir-ready");
  document.documentElement.dataset["ready"] = "yes";
}

/** Puts the whole page in place of one with a part of a large record; what a reader has zoomed to stays. */
async function complete(place: HTMLElement, url: string, view: View, sections: Section[]): Promise<void> {
  try {
    const answer = await fetch(url, { credentials: "same-origin" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const theirs = page.getElementById("weir-charts");
    if (theirs === null) throw new Error(page.querySelector("main")?.textContent ?? `the server says ${answer.status}`);
    const data = pageData(page);
    surround(place, theirs);
    downloads(data.records);
    const next = viewOf(data.records);
    [next.shown, next.marked, next.dragging] = [view.shown, view.marked, view.dragging];
    // While charts are drawn anew the page below them stays where it is.
    place.style.minHeight = `${place.offsetHeight}px`;
    sections.splice(0, sections.length, ...(await draw(place, data, next)));
    place.style.minHeight = "";
  } catch (error) {
    place.before(el("p", { class: "error", role: "alert" }, `The figures cannot be shown: ${said(error)}.`));
  }
}

/** Puts what stands around the charts of another page around these. */
function surround(place: HTMLElement, theirs: HTMLElement): void {
  const [mine, other] = [place.parentElement, theirs.parentElement];
  for (const one of [...(mine?.childNodes ?? [])]) if (one !== place) one.remove();
  const nodes = [...(other?.childNodes ?? [])];
  const at = nodes.indexOf(theirs);
  place.before(...nodes.slice(0, at));
  place.after(...nodes.slice(at + 1));
}

/** Buttons that save the raw data that the page has within. */
function downloads(records: RecordData[]): void {
  for (const place of document.querySelectorAll<HTMLElement>("[data-download]")) {
    const number = Number(place.dataset["download"]);
    const record = records[number];
    if (record === undefined) continue;
    const save = async () => {
      const bytes = await archiveOf(record, number);
      keep(new Blob([bytes as BlobPart], { type: "application/zip" }), record.file);
    };
    place.replaceChildren(button(`Save ${record.file}`, () => void save()));
  }
}

void begin();
