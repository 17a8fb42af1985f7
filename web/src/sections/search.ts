// Shapes near a model: speed against parameters, and the front that no other shape beats in both.
import { axis, figure, legend, tip } from "../charts/chart";
import type { Candidate, Search } from "../data";
import { h } from "../dom";
import * as format from "../format";
import { neutral } from "../palette";
import type { Section } from "./section";

const words = (c: Candidate) =>
  `hidden ${c.hidden}, heads ${c.heads} × ${c.head_dim}, ffn ${c.ffn}, layers ${c.layers}, vocab ${c.vocab}`;

function front(search: Search): HTMLElement {
  const points: [string, Candidate][] = [
    ["given", search.given],
    ...search.pareto.map((c): [string, Candidate] => ["Pareto front", c]),
    ["best per parameter", search.best_per_parameter],
  ];
  const known = points.filter(([, c]) => c.gain !== null);
  const series = (name: string, color: string, symbol: string, size: number) => ({
    type: "scatter",
    name,
    color,
    symbol,
    symbolSize: size,
    data: known
      .map(([kind, c], i) => ({ kind, value: [100 * c.parameters_change, 100 * c.gain!, i] }))
      .filter((d) => d.kind === name)
      .map((d) => d.value)
      .sort((a, b) => a[0]! - b[0]!),
  });
  return figure({
    label: () => `Shapes near ${search.model} on ${search.gpu}: change of speed against change of parameters`,
    height: 320,
    option: (colours) => ({
      legend: legend(colours),
      grid: { left: 8, right: 28, top: 62, bottom: 8, containLabel: true },
      tooltip: {
        formatter: (p: { value: [number, number, number] }) => {
          const [kind, c] = known[p.value[2]]!;
          return tip(kind, [
            ["shape", words(c)],
            ["parameters", format.signedPercent(c.parameters_change)],
            ["speed", c.gain_text],
            ["efficiency", format.percent(c.efficiency)],
          ]);
        },
      },
      xAxis: axis(colours, "", {
        type: "value",
        scale: true,
        axisLabel: { color: colours.muted, formatter: (v: number) => `${v.toFixed(1)} %` },
      }),
      yAxis: axis(colours, "faster by", {
        type: "value",
        axisLine: { onZero: false, lineStyle: { color: colours.line } },
        axisLabel: { color: colours.muted, formatter: (v: number) => `${v} %` },
      }),
      series: [
        series("Pareto front", neutral[0]!, "circle", 10),
        series("given", colours.text, "diamond", 14),
        series("best per parameter", neutral[5]!, "triangle", 14),
      ],
    }),
    table: () => ({
      head: ["", "shape", "parameters", "speed", "efficiency"],
      rows: points.map(([kind, c]) => [
        kind,
        words(c),
        format.signedPercent(c.parameters_change),
        c.gain_text,
        format.percent(c.efficiency),
      ]),
    }),
  }).element;
}

export const search: Section = {
  id: "search",
  title: "Better shapes nearby",
  lead: "Shapes with nearly as many parameters that are predicted to run faster. Quality is not predicted: train a small one before you trust a shape.",
  render(run) {
    if (run.searches.length === 0) return null;
    return run.searches.flatMap((s) => [
      h("h3", {}, `${s.model} on ${s.gpu} (${s.file})`),
      h("p", {}, `${format.count(s.candidates)} shapes were compared; x: change of parameters, y: change of speed.`),
      front(s),
    ]);
  },
};
