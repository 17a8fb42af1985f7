// Numbers with their units, as the command prints them: sizes in powers of 1024, times in the unit that leaves one to three digits.

function digits(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 || value === 0 ? 0 : size >= 10 ? 1 : 2);
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${unit === 0 || Number.isInteger(value) ? value : digits(value)} ${units[unit]}`;
}

export function time(us: number): string {
  if (us >= 1e6) return `${digits(us / 1e6)} s`;
  if (us >= 1e3) return `${digits(us / 1e3)} ms`;
  return `${digits(us)} µs`;
}

/** The same for marks of an axis, without zeros that say nothing. */
export function short(text: string): string {
  return text.replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
}

export function rate(gbPerSecond: number): string {
  const units = ["GB/s", "MB/s", "KB/s", "B/s"];
  let unit = 0;
  for (; gbPerSecond < 0.9995 && gbPerSecond > 0 && unit < units.length - 1; ++unit) gbPerSecond *= 1e3;
  return `${digits(gbPerSecond)} ${units[unit]}`;
}

export function percent(share: number): string {
  const value = 100 * share;
  if (value > 0 && value < 0.01) return "< 0.01 %";
  return `${Math.abs(value) >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(Math.abs(value) >= 1 ? 1 : 2)} %`;
}

export function signedPercent(share: number): string {
  return `${share < 0 ? "−" : "+"}${(Math.abs(share) * 100).toFixed(Math.abs(share) < 0.1 ? 2 : 0)} %`;
}

export function times(ratio: number): string {
  return `${ratio >= 10 ? ratio.toFixed(0) : ratio.toFixed(2)}×`;
}

export function count(value: number): string {
  return value.toLocaleString("en-US");
}

export function shape(hosts: number, ranksPerHost: number): string {
  return hosts === 1 ? `1 host × ${ranksPerHost} ranks` : `${hosts} hosts × ${ranksPerHost} ranks`;
}
