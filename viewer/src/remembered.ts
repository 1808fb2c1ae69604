// What a reader has put into a page, kept with its entry in the history. Firefox keeps no field of a page that may not be
// stored, as all of `weir ui` are: who comes back finds it empty there.

/** Keeps `what` under `name` with the page, and `address` in place of its own, if there is one. */
export function remember(name: string, what: unknown, address?: string): void {
  try {
    history.replaceState({ ...(history.state as object | null), [name]: what }, "", address);
  } catch {
    // A browser may refuse to be asked that often: what is missing then is put in anew.
  }
}

/** The texts that were kept under `name`; null if there are none. */
export function remembered(name: string): string[] | null {
  const kept: unknown = (history.state as Record<string, unknown> | null)?.[name];
  return Array.isArray(kept) && kept.every((one) => typeof one === "string") ? kept : null;
}
