// The page of a report: draws the charts of the records that it was given, and offers their raw data.
import { draw, viewOf } from "./charts";
import { archiveOf, pageData, type RecordData } from "./data";
import { button, el, prose, said } from "./dom";
import { keep } from "./save";
import { keepUp } from "./toolbar";

async function begin(): Promise<void> {
  const place = document.getElementById("weir-charts");
  if (place === null) return;
  const data = pageData();
  downloads(data.records);
  const view = viewOf(data.records);
  if (data.marked !== undefined) view.mark({ from: data.marked[0], to: Math.min(data.marked[1], view.all.to) });
  const sections = await draw(place, data, view);
  keepUp(sections);
  performance.mark("weir-ready");
  document.documentElement.dataset["ready"] = "yes";
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
    const says = el("span", { class: "quiet", role: "status" });
    const press = async () => {
      says.textContent = "";
      await save().catch((error: unknown) => says.replaceChildren(...prose(`It cannot be saved: ${said(error)}.`)));
    };
    place.replaceChildren(button(`Save ${record.file}`, () => void press()), " ", says);
  }
}

void begin();
