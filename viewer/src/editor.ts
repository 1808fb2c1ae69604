// The editor of a scenario file: what is wrong with it is told while it is written, and what the key of a line means.
import { asCommand, prose, switchOff } from "./dom";
import type { Answer, Send } from "./ui";

/** Where a line of TOML stands: the name of its key, with the tables that it is in; empty if it has none. */
export function keyAt(text: string, caret: number): string {
  const lines = text.slice(0, caret).split("\n");
  const rest = text.slice(caret).split("\n")[0] ?? "";
  const line = (lines.pop() ?? "") + rest;
  const [, header] = HEADER.exec(line) ?? [];
  if (header !== undefined) return bare(header);
  const [, key] = KEY.exec(line) ?? [];
  if (key === undefined) return "";
  const above = lines.reverse().find((one) => HEADER.test(one));
  const table = above === undefined ? "" : bare(HEADER.exec(above)?.[1] ?? "");
  return [table, bare(key)].filter(Boolean).join(".");
}

/** Begins the editor. */
export function editor(send: Send, prefix: string, mark: string): void {
  const form = found<HTMLFormElement>("form");
  const [file, text] = [named<HTMLInputElement>(form, "file"), named<HTMLTextAreaElement>(form, "text")];
  const [keep, start] = [found<HTMLButtonElement>("keep"), found<HTMLButtonElement>("start")];
  const [key, kept, error] = [found("key"), found("kept"), found("error")];
  const rows = [...document.querySelectorAll<HTMLTableRowElement>("#keys tr")];
  const content = () => ({ file: file.value, text: text.value, world: named<HTMLSelectElement>(form, "world").value, mark });
  let written = text.value;
  const wrong = (said: unknown) => {
    error.hidden = said === undefined;
    error.replaceChildren(...prose(said === undefined ? "" : String(said)));
  };
  let asked = 0;
  const check = async () => {
    const mine = ++asked;
    const answer = await send("scenario/check", content());
    if (mine !== asked) return;
    wrong(answer.error);
    switchOff(start, answer.error !== undefined && !answer.silent);
    if (answer["command"] !== undefined) found("command").replaceChildren(...asCommand(String(answer["command"])));
  };
  let timer = 0;
  /** Lets no check that is due or under way tell anything in place of the answer that is to come. */
  const unchecked = () => {
    clearTimeout(timer);
    asked++;
  };
  form.addEventListener("input", () => {
    kept.textContent = text.value === written ? "" : UNKEPT;
    clearTimeout(timer);
    timer = setTimeout(() => void check(), 250);
  });
  const explain = () => {
    const place = keyAt(text.value, text.selectionStart);
    const row = rows.find((one) => one.dataset["key"] === place);
    if (place === "") return;
    const [, kind, meaning] = [...(row?.cells ?? [])].map((cell) => cell.textContent ?? "");
    const says = row ? `${place} (${kind}): ${meaning}` : `\u201c${place}\u201d is no key that a scenario has here.`;
    if (key.textContent !== says) key.textContent = says;
  };
  for (const event of ["keyup", "click", "focus"]) text.addEventListener(event, explain);
  /** Takes note of what was kept, which may be other than what stands there meanwhile. */
  const note = (answer: Answer, sent: { file: string; text: string }) => {
    wrong(answer.error);
    if (answer["mark"] === undefined) return;
    [mark, written] = [String(answer["mark"]), sent.text];
    file.readOnly = true;
    // Who comes back to this page is to find the file.
    history.replaceState(null, "", `${prefix}/scenario?file=${encodeURIComponent(sent.file)}`);
    kept.textContent = text.value === written ? "Kept." : UNKEPT;
  };
  let last = Promise.resolve<unknown>(undefined);
  /** Sends what stands there once all that was sent before is answered: an answer tells the file's mark, which the next one needs. */
  const sendInTurn = (to: string, then: (answer: Answer) => void) => {
    last = last.then(async () => {
      const sent = content();
      unchecked();
      const answer = await send(to, sent);
      note(answer, sent);
      then(answer);
    });
  };
  keep.addEventListener("click", () => {
    if (!file.reportValidity()) return;
    sendInTurn("scenario/keep", (answer) => {
      // A refusal stays to be read; what is kept may be wrong nevertheless.
      if (answer.error === undefined) void check();
    });
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    switchOff(start, true);
    sendInTurn("scenario/start", (answer) => {
      switchOff(start, false);
      if (answer.error === undefined) location.assign(`${prefix}/runs/${String(answer["number"])}`);
    });
  });
  addEventListener("beforeunload", (event) => {
    if (text.value !== written) event.preventDefault();
  });
  const search = found<HTMLInputElement>("search");
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !words.every((word) => (row.textContent ?? "").toLowerCase().includes(word));
    found("count").textContent = `${rows.filter((row) => !row.hidden).length} shown`;
  });
  void check();
}

function found<Kind extends HTMLElement>(id: string): Kind {
  const one = document.getElementById(id);
  if (one === null) throw new Error(`the page has no ${id}`);
  return one as Kind;
}

const named = <Kind extends HTMLElement>(form: HTMLFormElement, name: string) => form.elements.namedItem(name) as unknown as Kind;
const UNKEPT = "Not kept yet.";
const bare = (name: string) => name.replaceAll(/["'\s]/g, "");
const HEADER = /^\s*\[\[?([^\]]+)\]\]?/;
const KEY = /^\s*([\w."'-]+)\s*=/;
