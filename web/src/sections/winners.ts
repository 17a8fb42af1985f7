// The heat map: for each operation and size the fastest route. A cell opens its samples, intervals and runners-up.
import { axis, figure, tip, type Figure } from "../charts/chart";
import { whiskers } from "../charts/whiskers";
import type { Cell, Route, Run } from "../data";
import { choice, h, table } from "../dom";
import * as format from "../format";
import { backendColour, blend, inkOn } from "../palette";
import { onThemeChange, theme } from "../theme";
import { swatch } from "./backends";
import { fusions } from "./fusion";
import type { Section } from "./section";

interface Setting {
  label: string;
  cells: Cell[];
}

/** One map for each table, comm shape, kind of memory and class of element type. */
function settingsOf(run: Run): Setting[] {
  const settings = new Map<string, Setting>();
  for (const routes of run.routes) {
    for (const cell of routes.cells) {
      // Only reductions tell element types apart; the map of floats holds all other operations too.
      const type = cell.dtype === "any" || cell.dtype === "float" ? "" : `, ${cell.dtype}`;
      const label = `${format.shape(cell.hosts, cell.ranks_per_host)}, ${cell.memory} memory${type} (${routes.file})`;
      if (!settings.has(label)) settings.set(label, { label, cells: [] });
      settings.get(label)!.cells.push(cell);
    }
  }
  return [...settings.values()].sort((a, b) => b.cells.length - a.cells.length);
}

const title = (cell: Cell) => `${cell.op}, ${format.bytes(cell.bytes)}`;

/** The fastest route of each backend, fastest first. */
function bestOfEach(routes: Route[]): Route[] {
  const seen = new Set<string>();
  return [...routes]
    .sort((a, b) => a.median_us - b.median_us)
    .filter((route) => !seen.has(route.backend) && seen.add(route.backend));
}

/** How much slower the best other backend is. */
function margin(routes: Route[]): number | null {
  const [first, second] = bestOfEach(routes);
  return first && second ? second.median_us / first.median_us : null;
}

function drillDown(): { element: HTMLElement; show(cell: Cell, routes: Route[]): void; close(): void } {
  const element = h("section", { class: "drill", "aria-live": "polite", hidden: true });
  let routes: Route[] = [];
  let cell: Cell | undefined;
  let plot: Figure | undefined;
  const make = () =>
    figure({
      label: () => (cell ? `Routes of ${title(cell)} with 95 % intervals of the median` : ""),
      height: () => 46 + 26 * routes.length,
      option: (colours) => ({
        grid: { left: 8, right: 60, top: 8, bottom: 8, containLabel: true },
        tooltip: {
          formatter: (p: { dataIndex: number }) => {
            const route = routes[routes.length - 1 - p.dataIndex]!;
            return tip(`${route.backend} ${route.algorithm}`, [
              ["median", format.time(route.median_us)],
              ["95 % interval", `${format.time(route.low_us)} to ${format.time(route.high_us)}`],
              ["samples", format.count(route.samples)],
            ]);
          },
        },
        xAxis: axis(colours, "", {
          type: "log",
          axisLabel: { color: colours.muted, formatter: (v: number) => format.short(format.time(v)) },
        }),
        yAxis: axis(colours, "", {
          type: "category",
          data: routes.map((r) => `${r.backend} ${r.algorithm}`).reverse(),
          splitLine: { show: false },
        }),
        series: [
          {
            type: "scatter",
            symbolSize: 10,
            data: [...routes]
              .reverse()
              .map((r) => ({ value: r.median_us, itemStyle: { color: backendColour(r.backend) } }))
              .map((d, i) => ({ ...d, value: [d.value, i] })),
          },
          whiskers(
            colours,
            [...routes].reverse().map((r, i) => [i, r.low_us, r.high_us]),
            true,
          ),
        ],
      }),
      table: () => ({
        head: ["route", "median", "95 % interval", "samples", "against the fastest"],
        rows: routes.map((r) => [
          `${r.backend} ${r.algorithm}`,
          format.time(r.median_us),
          `${format.time(r.low_us)} – ${format.time(r.high_us)}`,
          format.count(r.samples),
          format.times(r.median_us / routes[0]!.median_us),
        ]),
      }),
    });
  return {
    element,
    show(chosen, shown) {
      cell = chosen;
      routes = [...shown].sort((a, b) => a.median_us - b.median_us).slice(0, 14);
      const first = routes[0]!,
        second = bestOfEach(shown)[1];
      const words = second
        ? `${first.backend} (${first.algorithm}) is ${format.times(second.median_us / first.median_us)} faster than ${second.backend}, the next library.`
        : `${first.backend} (${first.algorithm}) is the only library here.`;
      const sure = `The fastest route is the fastest with a confidence of ${format.percent(chosen.confidence)}.`;
      element.hidden = false;
      plot = make();
      element.replaceChildren(h("h3", {}, title(chosen)), h("p", {}, `${words} ${sure}`), plot.element);
    },
    close() {
      element.hidden = true;
      element.replaceChildren();
    },
  };
}

export const winners: Section = {
  id: "winners",
  title: "Which route wins",
  lead: "The fastest route for each operation and tensor size, and how much slower the best other library is. Choose a cell for its samples.",
  render(run) {
    const settings = settingsOf(run);
    if (settings.length === 0) return null;
    let setting = settings[0]!;
    const left = new Set<string>(); // backends that the reader took away
    const names = [
      ...new Set(run.routes.flatMap((r) => r.cells.flatMap((c) => c.routes.map((route) => route.backend)))),
    ].sort();
    const holder = h("div");
    const drill = drillDown();

    const draw = () => {
      drill.close();
      const ops = [...new Set(setting.cells.map((cell) => cell.op))];
      const sizes = [...new Set(setting.cells.map((cell) => cell.bytes))].sort((a, b) => a - b);
      const colours = theme();
      const buttons: (HTMLElement | null)[][] = [];
      const body = h("tbody");
      ops.forEach((op, y) => {
        buttons[y] = [];
        const row = h("tr", {}, h("th", { scope: "row" }, op));
        sizes.forEach((size, x) => {
          const cell = setting.cells.find((c) => c.op === op && c.bytes === size);
          const routes = cell?.routes.filter((route) => !left.has(route.backend)) ?? [];
          const best = bestOfEach(routes)[0];
          if (!cell || !best) {
            buttons[y]![x] = null;
            row.append(h("td", { class: "empty" }, "·"));
            return;
          }
          const gap = margin(routes);
          const strength = gap === null ? 1 : Math.min(1, 0.25 + 0.75 * (Math.log(gap) / Math.log(4)));
          const colour = blend(backendColour(best.backend), colours.surface, strength);
          const words = `${best.backend} ${gap ? `${format.times(gap)} faster than the next library` : "alone"}: ${title(cell)}`;
          const button = h(
            "button",
            { type: "button", tabindex: -1, "aria-label": words, title: `${words}; ${format.time(best.median_us)}` },
            h("b", {}, best.backend),
            " ",
            h("small", {}, gap ? format.times(gap) : "alone"),
          );
          button.style.background = colour;
          button.style.color = inkOn(colour);
          button.addEventListener("click", () => {
            holder.querySelector("button[aria-pressed=true]")?.setAttribute("aria-pressed", "false");
            button.setAttribute("aria-pressed", "true");
            drill.show(cell, routes);
          });
          button.addEventListener("focus", () => {
            holder.querySelector("button[tabindex='0']")?.setAttribute("tabindex", "-1");
            button.tabIndex = 0;
          });
          button.addEventListener("keydown", (event: KeyboardEvent) => {
            if (event.key === "Escape") drill.close();
            const next = step(buttons, y, x, event.key);
            if (!next) return;
            event.preventDefault();
            next.focus();
          });
          buttons[y]![x] = button;
          row.append(h("td", {}, button));
        });
        body.append(row);
      });
      const first = buttons.flat().find((button) => button);
      if (first) first.tabIndex = 0;
      const head = h("tr", {}, h("td", {}), ...sizes.map((size) => h("th", { scope: "col" }, format.bytes(size))));
      holder.replaceChildren(
        h(
          "div",
          { class: "scroll", role: "region", "aria-label": "Heat map of winners; arrow keys move, Enter opens a cell" },
          h(
            "table",
            { class: "heat" },
            h("caption", { class: "hidden" }, `Fastest route by operation and size: ${setting.label}`),
            h("thead", {}, head),
            body,
          ),
        ),
      );
    };

    const toggles = h("fieldset", { class: "toggles" }, h("legend", {}, "Libraries that compete"));
    for (const name of names) {
      const box = h("input", { type: "checkbox", checked: true, "data-backend": name });
      box.addEventListener("change", () => {
        if (box.checked) left.delete(name);
        else left.add(name);
        draw();
      });
      toggles.append(h("label", {}, box, swatch(name)));
    }
    onThemeChange(draw);
    draw();
    const counts = new Map<string, number>();
    for (const cell of run.routes.flatMap((r) => r.cells)) {
      const best = bestOfEach(cell.routes)[0]!.backend;
      counts.set(best, (counts.get(best) ?? 0) + 1);
    }
    const wins = [...counts]
      .sort((a, b) => b[1] - a[1])
      .map(([name, cells]) => [{ text: name, node: swatch(name) }, cells]);
    const folded = h("details", {}, h("summary", {}, "Cells that each backend wins"));
    folded.append(table({ head: ["backend", "cells"], rows: wins }, "Cells that each backend wins"));
    const pick = choice(
      "Setting",
      settings.map((s) => s.label),
      (index) => {
        setting = settings[index]!;
        draw();
      },
    );
    return [h("div", { class: "controls" }, pick, toggles), holder, drill.element, folded, ...fusions(run)];
  },
};

/** The cell that an arrow key leads to: the next one in its direction that holds something. */
function step(buttons: (HTMLElement | null)[][], y: number, x: number, key: string): HTMLElement | null {
  const moves: Record<string, [number, number]> = {
    ArrowRight: [0, 1],
    ArrowLeft: [0, -1],
    ArrowDown: [1, 0],
    ArrowUp: [-1, 0],
  };
  if (key === "Home") return buttons[y]!.find((button) => button) ?? null;
  if (key === "End") return [...buttons[y]!].reverse().find((button) => button) ?? null;
  const move = moves[key];
  if (!move) return null;
  for (;;) {
    y += move[0];
    x += move[1];
    if (!buttons[y] || x < 0 || x >= buttons[y]!.length) return null;
    if (buttons[y]![x]) return buttons[y]![x]!;
  }
}
