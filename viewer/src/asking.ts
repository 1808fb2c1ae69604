// What `weir ui` answers.

/** What `weir ui` itself could not do. */
class Failed extends Error {}

/** The JSON at an address, also that which says what is wrong; an error says in a sentence that there is no answer. */
export async function ask<Answer>(address: string, request: RequestInit = {}): Promise<Answer> {
  try {
    const answer = await fetch(address, request);
    if (answer.headers.get("content-type")?.startsWith("application/json")) return (await answer.json()) as Answer;
    // One that was started anew refuses the links of the one before, and not in JSON.
    if (answer.status !== 403) throw new Failed(`\`weir ui\` failed (${answer.status}): its terminal says more`);
  } catch (error) {
    if (error instanceof Failed) throw error;
    // Whatever a browser calls it: there is no answer.
  }
  throw new Error(NO_ANSWER);
}

/** That nobody is there any more. */
export const NO_ANSWER = "no answer from `weir ui`: if it has ended, start it again and open the link that it prints";
