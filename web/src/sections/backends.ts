// Which libraries were found, and why others were not.
import { h, table } from "../dom";
import { backendColour } from "../palette";
import type { Section } from "./section";

export function swatch(name: string): HTMLElement {
  const dot = h("span", { class: "swatch", "aria-hidden": "true" });
  dot.style.background = backendColour(name);
  if (name === "auto") dot.style.background = "var(--text)";
  return h("span", { class: "backend" }, dot, name);
}

export const backends: Section = {
  id: "backends",
  title: "Backends",
  lead: "The communication libraries found on this machine. An operation that a library lacks is filled in over its sends and receives.",
  render(run) {
    const info = run.info[0];
    if (!info) return null;
    const rows = info.backends.map((backend) => {
      const native = Object.values(backend.ops).filter((how) => how === "native").length;
      return [
        { text: backend.name, node: swatch(backend.name) },
        backend.available ? "yes" : "no",
        backend.version || "–",
        backend.memory.join(", ") || "–",
        backend.available ? `${native} native, ${Object.keys(backend.ops).length - native} filled in` : "–",
        backend.reason || "–",
      ];
    });
    const found = info.backends.filter((backend) => backend.available);
    const ops = info.operations.map((op) => [op, ...found.map((backend) => backend.ops[op] ?? "–")]);
    const details = h("details", {}, h("summary", {}, "Operations of each backend"));
    details.append(
      table({ head: ["operation", ...found.map((backend) => backend.name)], rows: ops }, "Operations of each backend"),
    );
    return [
      h("p", {}, `medley ${info.version}, ${info.cores} usable cores.`),
      table({ head: ["backend", "available", "version", "memory", "operations", "why not"], rows }, "Backends"),
      details,
    ];
  },
};
