// A section of the page: what it makes of one run, or nothing where the run has no data for it.
import type { Run } from "../data";

export interface Section {
  id: string;
  title: string;
  /** How to read it, in a sentence. */
  lead: string;
  render(run: Run): (Node | null)[] | null;
}
