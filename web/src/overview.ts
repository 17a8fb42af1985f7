// The header: the findings that matter, in words, and what was not measured with the command that would.
import type { Change, Report, Run } from "./data";
import { h, table } from "./dom";
import * as format from "./format";
import { themeToggle } from "./theme";

export function pageHeader(report: Report): HTMLElement {
  const names = report.runs.map((run) => run.name).join(" against ");
  return h(
    "header",
    { class: "top" },
    h("div", {}, h("h1", {}, "Medley report"), h("p", { class: "muted" }, `${names} · medley ${report.version}`)),
    themeToggle(),
  );
}

export function findings(run: Run): Node[] {
  const headlines = run.findings.filter((finding) => finding.headline);
  const list = h("ol", { class: "findings" });
  for (const finding of headlines) {
    list.append(h("li", {}, h("p", {}, finding.sentence, " ", h("a", { href: `#${finding.section}` }, "Details"))));
  }
  return [
    headlines.length > 0 ? list : h("p", {}, "No measurements were found."),
    missing(run),
    ...run.failed.map((line) => h("p", { class: "alert" }, `Failed: ${line}`)),
  ];
}

/** What the page is silent about, in one sentence. */
function missing(run: Run): HTMLElement {
  const parts = run.not_measured.map(({ what }) => /^[A-Z][a-z]/.test(what) ? what.charAt(0).toLowerCase() + what.slice(1) : what);
  if (parts.length === 0) return h("p", {}, "Every part of the report has data.");
  return h(
    "p",
    { class: "not-measured" },
    h("strong", {}, "Not measured: "),
    `${parts.join("; ")}. `,
    h("a", { href: "#missing" }, "How to measure it"),
  );
}

export function notMeasured(run: Run): Node[] {
  if (run.not_measured.length === 0) return [h("p", {}, "Every part of the report has data.")];
  const list = h("dl", { class: "missing" });
  for (const { what, command } of run.not_measured) list.append(h("dt", {}, what), h("dd", {}, h("code", {}, command)));
  return [list];
}

function changeText(change: Change): string {
  const ratio = change.before / change.after;
  if (Math.abs(ratio - 1) < 0.02) return "the same";
  return ratio > 1 ? `${format.times(ratio)} faster` : `${format.times(1 / ratio)} slower`;
}

/** What differs between two runs, largest changes first. */
export function changes(report: Report): HTMLElement | null {
  if (report.changes.length === 0) return null;
  const [first, second] = report.runs;
  return table(
    {
      head: ["measured in both", first!.name, second!.name, `${first!.name} is`],
      rows: report.changes.map((change) => [
        change.what,
        format.time(change.after),
        format.time(change.before),
        changeText(change),
      ]),
    },
    "What differs between the two runs",
  );
}
