// Expected against observed: rows of the plan that a run matched, and every difference with its cause.
import { axis, figure, legend } from "../charts/chart";
import type { Difference, Reconcile, Side } from "../data";
import { h, table } from "../dom";
import * as format from "../format";
import { neutral } from "../palette";
import type { Section } from "./section";
import { waits } from "./waits";

/** The verdicts of medley reconcile in words. */
const verdicts: Record<string, string> = {
  missing: "not sent",
  extra: "not planned",
  count: "another count",
  size: "another size",
  field: "differs",
  order: "another order",
};
const side = (value: Side | null) => (value ? `${format.count(value.count)} × ${format.bytes(value.bytes)}` : "–");
const cause = (d: Difference) => d.cause || (d.detail ? `${d.detail}; no known cause` : "no known cause");

function differences(result: Reconcile): Node[] {
  if (result.matched && result.differences.length === 0)
    return [h("p", {}, `${result.file}: everything that was planned was sent, and nothing else.`)];
  const rows = result.differences.map((d) => [
    verdicts[d.verdict] ?? d.verdict,
    d.op || "–",
    d.group || "–",
    d.rank === null ? "–" : d.ranks > 1 ? `${d.rank} and ${d.ranks - 1} more` : `${d.rank}`,
    side(d.expected),
    side(d.observed),
    cause(d),
  ]);
  return [
    h("h3", {}, result.file),
    ...result.hypotheses.filter((e) => e.accepted).map((e) => h("p", {}, `${e.hypothesis}: explains ${e.rows} rows.`)),
    table(
      { head: ["verdict", "operation", "group", "rank", "expected", "observed", "cause"], rows },
      `Differences of ${result.file}`,
    ),
    ...(result.differences_left_out > 0
      ? [h("p", {}, `${format.count(result.differences_left_out)} more differences are in the file.`)]
      : []),
  ];
}

export const reconcile: Section = {
  id: "reconcile",
  title: "Expected against observed",
  lead: "What was planned beside what a run sent. A difference with a known cause is explained by one sentence about the plan.",
  render(run) {
    if (run.reconcile.length === 0) return null;
    const all = [...run.reconcile].reverse();
    const parts: [string, string, (r: Reconcile) => number][] = [
      ["matched", neutral[2]!, (r) => r.rows_matched],
      ["differ, explained", neutral[1]!, (r) => r.rows_explained],
      ["differ, no known cause", neutral[5]!, (r) => r.rows_unexplained],
    ];
    const plot = figure({
      label: () => "Rows of each comparison: matched, explained and not explained",
      height: 70 + 34 * all.length,
      option: (colours) => ({
        legend: legend(colours),
        xAxis: axis(colours, "", { type: "value", minInterval: 1 }),
        yAxis: axis(colours, "", {
          type: "category",
          data: all.map((r) => r.file),
          axisLabel: { color: colours.text, width: 220, overflow: "truncate" },
        }),
        series: parts.map(([name, color, value]) => ({
          type: "bar",
          stack: "rows",
          name,
          color,
          barMaxWidth: 20,
          data: all.map(value),
        })),
      }),
      table: () => ({
        head: ["file", "matched", "differ, explained", "differ, no known cause"],
        rows: run.reconcile.map((r) => [r.file, r.rows_matched, r.rows_explained, r.rows_unexplained]),
      }),
    });
    const times = run.reconcile.flatMap((result) => (result.time ? waits(result.time, result.source) : []));
    return [plot.element, ...run.reconcile.flatMap(differences), ...times];
  },
};
