// A model's matrix products: how long each takes and what it loses to what; the cliff of an odd vocabulary; what to change.
import { axis, figure, legend, tip } from "../charts/chart";
import type { GemmRow, GemmSweep, Lint, Shape } from "../data";
import { h, table } from "../dom";
import * as format from "../format";
import { neutral } from "../palette";
import type { Section } from "./section";

const total = (gemm: GemmRow) => gemm.count * gemm.predicted_us;

function losses(shape: Shape): HTMLElement {
  const rows = [...shape.gemms].sort((a, b) => total(a) - total(b)).slice(-16);
  const causes = [...new Set(rows.flatMap((row) => Object.keys(row.lost_us)))].filter((cause) =>
    rows.some((row) => row.count * row.lost_us[cause]! > 0.002 * total(row)),
  );
  const useful = (row: GemmRow) =>
    row.count * Math.max(0, row.predicted_us - Object.values(row.lost_us).reduce((sum, us) => sum + us, 0));
  return figure({
    label: () => `Matrix products of ${shape.model} on ${shape.gpu}: time in one step, and what of it is lost to what`,
    height: 80 + 24 * rows.length,
    option: (colours) => ({
      legend: legend(colours),
      tooltip: {
        trigger: "axis",
        axisPointer: { type: "shadow" },
        formatter: (list: { dataIndex: number }[]) => {
          const row = rows[list[0]!.dataIndex]!;
          return tip(row.name, [
            ["m × n × k", `${row.m} × ${row.n} × ${row.k}${row.batch > 1 ? `, batch ${row.batch}` : ""}`],
            ["calls in a step", format.count(row.count)],
            ["one call", format.time(row.predicted_us)],
            ["rate", `${row.tflops.toFixed(0)} TFLOP/s (${format.percent(row.efficiency)})`],
            ...causes.map((cause): [string, string] => [`lost to ${cause}`, format.time(row.lost_us[cause] ?? 0)]),
          ]);
        },
      },
      xAxis: axis(colours, "", {
        type: "value",
        axisLabel: { color: colours.muted, formatter: (v: number) => format.short(format.time(v)), hideOverlap: true },
      }),
      yAxis: axis(colours, "", {
        type: "category",
        data: rows.map((row) => row.name),
        axisLabel: { color: colours.text },
      }),
      series: [
        { type: "bar", stack: "time", name: "useful", color: neutral[6], barMaxWidth: 16, data: rows.map(useful) },
        ...causes.map((cause, i) => ({
          type: "bar",
          stack: "time",
          name: `lost to ${cause}`,
          color: neutral[[5, 0, 1, 3, 4, 2][i % 6]!],
          data: rows.map((row) => row.count * (row.lost_us[cause] ?? 0)),
        })),
      ],
    }),
    table: () => ({
      head: ["product", "calls", "m", "n", "k", "one call", "TFLOP/s", "efficiency", "lost to"],
      rows: [...shape.gemms]
        .sort((a, b) => total(b) - total(a))
        .map((row) => [
          row.name,
          row.count,
          row.m,
          row.n,
          row.k,
          format.time(row.predicted_us),
          row.tflops.toFixed(0),
          format.percent(row.efficiency),
          row.lost_to,
        ]),
    }),
  }).element;
}

/** The dimension that differs from row to row. */
function varied(sweep: GemmSweep): "m" | "n" | "k" {
  return (["n", "k", "m"] as const).find((key) => new Set(sweep.rows.map((row) => row[key])).size > 1) ?? "n";
}

function cliff(sweep: GemmSweep): HTMLElement {
  const key = varied(sweep),
    rows = [...sweep.rows].sort((a, b) => a[key] - b[key]);
  const align = (value: number) => [64, 8, 2].find((step) => value % step === 0) ?? 1;
  const groups: [string, string, (value: number) => boolean][] = [
    ["multiple of 64", neutral[2]!, (v) => align(v) === 64],
    ["multiple of 8", neutral[0]!, (v) => align(v) === 8],
    ["other even number", neutral[1]!, (v) => align(v) === 2],
    ["odd", neutral[5]!, (v) => align(v) === 1],
  ];
  const symbols = ["circle", "diamond", "triangle", "rect"];
  return figure({
    label: () => `Rate of a matrix product on ${sweep.gpu} against ${key}`,
    height: 320,
    option: (colours) => ({
      legend: legend(colours),
      grid: { left: 8, right: 28, top: 62, bottom: 8, containLabel: true },
      tooltip: {
        formatter: (p: { value: [number, number, number] }) => {
          const row = rows[p.value[2]]!;
          return tip(`${key} = ${row[key]}`, [
            ["m × n × k", `${row.m} × ${row.n} × ${row.k}`],
            ["time", format.time(row.predicted_us)],
            ["rate", `${row.tflops.toFixed(0)} TFLOP/s`],
            ["lost most to", row.lost_to],
          ]);
        },
      },
      xAxis: axis(colours, key, {
        type: "value",
        scale: true,
        axisLabel: { color: colours.muted, formatter: (v: number) => String(v), hideOverlap: true },
      }),
      yAxis: axis(colours, "TFLOP/s", { type: "value", min: 0 }),
      series: groups.map(([name, color, belongs], i) => ({
        type: "scatter",
        name,
        color,
        symbol: symbols[i],
        symbolSize: 10,
        data: rows.map((row, at) => [row[key], row.tflops, at]).filter(([v]) => belongs(v!)),
      })),
    }),
    table: () => ({
      head: ["m", "n", "k", "time", "TFLOP/s", "efficiency", "lost to"],
      rows: rows.map((row) => [
        row.m,
        row.n,
        row.k,
        format.time(row.predicted_us),
        row.tflops.toFixed(0),
        format.percent(row.efficiency),
        row.lost_to,
      ]),
    }),
  }).element;
}

function advice(shape: Shape): Node | null {
  if (shape.advice.length === 0) return h("p", {}, "Nothing nearby is predicted to run faster.");
  return table(
    {
      head: ["change", "from", "to", "speed", "parameters", "because"],
      rows: shape.advice.map((a) => [
        a.knob,
        a.was,
        a.now,
        a.gain_text,
        format.signedPercent(a.parameters_change),
        a.why,
      ]),
    },
    `Advice for ${shape.model}`,
  );
}

function lint(result: Lint): Node {
  if (result.findings.length === 0)
    return h("p", {}, `${result.model}: no number wastes more than allowed on ${result.gpu}.`);
  return h(
    "ul",
    {},
    ...result.findings.map((f) =>
      h(
        "li",
        {},
        `${result.model}: ${f.key} ${f.value}${f.waste === null ? "" : ` wastes ${format.percent(f.waste)} of the step on ${result.gpu}`}${f.better === null ? "" : `; ${f.better} would not`} (${f.why}).`,
      ),
    ),
  );
}

export const shapes: Section = {
  id: "shape",
  title: "Matrix products",
  lead: "The products of a model on a GPU: time in one step, with what is lost to alignment, tiles, waves, memory and launches. Speed is predicted; model quality is not.",
  render(run) {
    if (run.shapes.length + run.gemms.length + run.lints.length === 0) return null;
    return [
      ...run.shapes.flatMap((shape) => [
        h("h3", {}, `${shape.model} on ${shape.gpu} (${shape.file})`),
        h(
          "p",
          {},
          `${format.time(shape.step_us)} per step, ${shape.tflops_per_gpu.toFixed(0)} TFLOP/s per GPU, ${format.percent(shape.efficiency)} of its best rate.${shape.calibrated ? "" : " The GPU is not calibrated: trust the order, not the size."}`,
        ),
        losses(shape),
        h("h4", {}, "What to change"),
        advice(shape),
      ]),
      ...run.lints.map(lint),
      ...run.gemms.flatMap((sweep) => [
        h("h3", {}, `One product at several sizes: ${sweep.gpu} (${sweep.file})`),
        cliff(sweep),
      ]),
    ];
  },
};
