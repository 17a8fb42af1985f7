// Latency and bandwidth against size, both axes logarithmic: one line per backend, its fastest algorithm at each size.
import { axis, figure, legend, tip } from "../charts/chart";
import type { Option } from "../charts/echarts";
import type { Run } from "../data";
import { choice, h } from "../dom";
import * as format from "../format";
import { backendColour } from "../palette";
import type { Theme } from "../theme";
import type { Section } from "./section";

interface Point {
  op: string;
  backend: string;
  algorithm: string;
  bytes: number;
  us: number;
  low: number;
  high: number;
}
interface Source {
  label: string;
  points: Point[];
}

/** Bench has every point with its deviation; a route table serves where nothing was benched. */
function sourcesOf(run: Run): Source[] {
  const sources: Source[] = [];
  for (const bench of run.bench) {
    for (const memory of new Set(bench.rows.map((row) => row.memory))) {
      sources.push({
        label: `${bench.ranks} ranks on ${bench.hosts} host${bench.hosts > 1 ? "s" : ""}, ${memory} memory (${bench.file})`,
        points: bench.rows
          .filter((row) => row.memory === memory && row.bytes > 0)
          .map((row) => ({
            op: row.counts === "skewed" ? `${row.op} skewed` : row.op,
            backend: row.backend,
            algorithm: row.algorithm,
            bytes: row.bytes,
            us: row.median_us,
            low: row.median_us - row.mad_us,
            high: row.median_us + row.mad_us,
          })),
      });
    }
  }
  for (const routes of run.routes) {
    const settings = new Map<string, Point[]>();
    for (const cell of routes.cells) {
      if (cell.bytes <= 0 || cell.dtype === "half" || cell.dtype === "integer") continue;
      const label = `${format.shape(cell.hosts, cell.ranks_per_host)}, ${cell.memory} memory (${routes.file})`;
      if (!settings.has(label)) settings.set(label, []);
      for (const route of cell.routes)
        settings.get(label)!.push({
          op: cell.op,
          backend: route.backend,
          algorithm: route.algorithm,
          bytes: cell.bytes,
          us: route.median_us,
          low: route.low_us,
          high: route.high_us,
        });
    }
    for (const [label, points] of settings) sources.push({ label, points });
  }
  return sources.filter((source) => source.points.some((point) => point.us > 0));
}

function linesOf(points: Point[], op: string): Map<string, Point[]> {
  const lines = new Map<string, Map<number, Point>>();
  for (const point of points) {
    if (point.op !== op || point.us <= 0) continue;
    if (!lines.has(point.backend)) lines.set(point.backend, new Map());
    const line = lines.get(point.backend)!;
    const known = line.get(point.bytes);
    if (!known || point.us < known.us) line.set(point.bytes, point);
  }
  return new Map(
    [...lines].sort().map(([backend, line]) => [backend, [...line.values()].sort((a, b) => a.bytes - b.bytes)]),
  );
}

const bandwidth = (point: Point) => point.bytes / point.us / 1e3;

function draw(
  colours: Theme,
  lines: Map<string, Point[]>,
  value: (point: Point) => number,
  unit: string,
  show: (value: number) => string,
): Option {
  return {
    legend: legend(colours),
    tooltip: {
      trigger: "item",
      formatter: (p: { seriesName: string; dataIndex: number }) => {
        const point = lines.get(p.seriesName)![p.dataIndex]!;
        return tip(`${point.backend}, ${format.bytes(point.bytes)}`, [
          ["time", format.time(point.us)],
          ["interval", `${format.time(Math.max(0, point.low))} to ${format.time(point.high)}`],
          ["bandwidth", format.rate(bandwidth(point))],
          ["algorithm", point.algorithm],
        ]);
      },
    },
    xAxis: axis(colours, "", {
      type: "log",
      logBase: 2,
      min: "dataMin",
      max: "dataMax",
      axisLabel: { color: colours.muted, formatter: format.bytes, hideOverlap: true },
    }),
    yAxis: axis(colours, unit, { type: "log", axisLabel: { color: colours.muted, formatter: show } }),
    grid: { left: 8, right: 20, top: 62, bottom: 8, containLabel: true },
    series: [...lines].map(([backend, points]) => ({
      type: "line",
      name: backend,
      color: backendColour(backend),
      symbol: "circle",
      symbolSize: 7,
      lineStyle: { width: 2, type: backend.includes("+") ? "dashed" : "solid" },
      data: points.map((point) => [point.bytes, value(point)]),
    })),
  };
}

export const curves: Section = {
  id: "curves",
  title: "Latency and bandwidth",
  lead: "Median time of one operation and bytes of the tensor over that time, each library with its fastest algorithm at each size.",
  render(run) {
    const sources = sourcesOf(run);
    if (sources.length === 0) return null;
    let source = sources[0]!;
    let op = source.points[0]!.op;
    const lines = () => linesOf(source.points, op);
    const rows = () =>
      [...lines()].flatMap(([backend, points]) =>
        points.map((p) => [
          backend,
          format.bytes(p.bytes),
          p.algorithm,
          format.time(p.us),
          `${format.time(Math.max(0, p.low))} – ${format.time(p.high)}`,
          format.rate(bandwidth(p)),
        ]),
      );
    const table = () => ({ head: ["backend", "size", "algorithm", "median", "interval", "bandwidth"], rows: rows() });
    const latency = figure({
      label: () => `Latency of ${op} against size, one line per backend`,
      height: 340,
      option: (colours) =>
        draw(
          colours,
          lines(),
          (p) => p.us,
          "latency",
          (v) => format.short(format.time(v)),
        ),
      table,
    });
    const speed = figure({
      label: () => `Bandwidth of ${op} against size, one line per backend`,
      height: 340,
      option: (colours) => draw(colours, lines(), bandwidth, "bandwidth", (v) => format.short(format.rate(v))),
      table,
    });
    const controls = h("div", { class: "controls" });
    const redraw = () => {
      latency.update();
      speed.update();
    };
    const pickOp = () => {
      const ops = [...new Set(source.points.map((point) => point.op))];
      if (!ops.includes(op)) op = ops[0]!;
      const picker = choice("Operation", ops, (index) => {
        op = ops[index]!;
        redraw();
      });
      const select = picker?.querySelector("select");
      if (select) select.selectedIndex = ops.indexOf(op);
      return picker;
    };
    let operations = pickOp();
    const pickSource = choice(
      "Setting",
      sources.map((s) => s.label),
      (index) => {
        source = sources[index]!;
        const next = pickOp();
        operations?.remove();
        operations = next;
        if (next) controls.append(next);
        redraw();
      },
    );
    if (pickSource) controls.append(pickSource);
    if (operations) controls.append(operations);
    return [controls, h("div", { class: "two" }, latency.element, speed.element)];
  },
};
