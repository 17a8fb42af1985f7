// Each backend has one colour in the whole page (Okabe and Ito's set, which colour-blind readers can tell apart). Names are always
// written beside colours.
import { theme } from "./theme";

const known: Record<string, string> = {
  shm: "#0072b2",
  mpi: "#d55e00",
  gloo: "#009e73",
  ucx: "#cc79a7",
  nccl: "#e69f00",
  "shm+mpi": "#56b4e9",
  "shm+ucx": "#8b6fc0",
  "shm+gloo": "#7f8c3a",
};
const others = ["#7a7a7a", "#a6761d", "#5a8fb0", "#94506b"];
const given = new Map<string, string>();

export function backendColour(name: string): string {
  if (name === "auto") return theme().text;
  const fixed = known[name];
  if (fixed) return fixed;
  if (!given.has(name)) given.set(name, others[given.size % others.length]!);
  return given.get(name)!;
}

/** Shares that are not backends: causes of loss, matched and not. */
export const neutral = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999"];

type Rgb = [number, number, number];
const parse = (colour: string): Rgb => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)) as Rgb;

export function blend(colour: string, into: string, share: number): string {
  const a = parse(colour),
    b = parse(into);
  return `#${a
    .map((v, i) =>
      Math.round(v * share + b[i]! * (1 - share))
        .toString(16)
        .padStart(2, "0"),
    )
    .join("")}`;
}

function luminance(colour: string): number {
  const [r, g, b] = parse(colour).map((v) => {
    const s = v / 255;
    return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  }) as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Black or white, whichever is easier to read on `colour`. */
export function inkOn(colour: string): string {
  const l = luminance(colour);
  return (l + 0.05) / 0.05 > 1.05 / (l + 0.05) ? "#000000" : "#ffffff";
}
