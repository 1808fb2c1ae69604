// Earlier results, in the browser's own storage: they leave it only as a link or a file that the reader makes.

import { decoded, encoded, type Result } from "./result.js";

/** The results that are kept, the latest first. Those that cannot be read are left out. */
export async function kept(): Promise<Result[]> {
  const found = await Promise.all(texts().map(decoded));
  return found.filter((one) => one !== null).sort((one, other) => other.at - one.at);
}

/** Keeps a result, in place of the oldest one if there are too many. */
export async function keep(result: Result): Promise<void> {
  store([await encoded(result), ...texts()].slice(0, MAX_KEPT));
}

/** Forgets all. */
export function forget(): void {
  store([]);
}

function texts(): string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one === "string").slice(0, MAX_KEPT) : [];
  } catch {
    // A browser that is told to keep nothing refuses.
    return [];
  }
}

function store(all: string[]): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch {
    // As above; the result is still on the page.
  }
}

const KEY = "weir-results";
const MAX_KEPT = 30;
