// What src/report/ of the C++ side puts into the page. Its collector has checked every type, so nothing is checked again here.

export interface BackendInfo {
  name: string;
  available: boolean;
  reason: string;
  version: string;
  memory: string[];
  ops: Record<string, string>;
}
export interface Info {
  file: string;
  version: string;
  cores: number;
  operations: string[];
  backends: BackendInfo[];
}
export interface BenchRow {
  op: string;
  backend: string;
  algorithm: string;
  memory: string;
  dtype: string;
  counts: string;
  bytes: number;
  median_us: number;
  mad_us: number;
  p99_us: number;
  iterations: number;
}
export interface Bench {
  file: string;
  ranks: number;
  hosts: number;
  rows: BenchRow[];
}
export interface StepRow {
  mix: string;
  backend: string;
  memory: string;
  median_us: number;
  mad_us: number;
  p99_us: number;
  iterations: number;
}
export interface Steps {
  file: string;
  ranks: number;
  hosts: number | null;
  rows: StepRow[];
}
export interface Route {
  backend: string;
  algorithm: string;
  median_us: number;
  low_us: number;
  high_us: number;
  samples: number;
}
export interface Cell {
  op: string;
  bytes: number;
  hosts: number;
  ranks_per_host: number;
  memory: string;
  dtype: string;
  confidence: number;
  routes: Route[];
}
/** Many tensors of one size, one by one and fused; `limit`: up to which size fusion was always faster. */
export interface Fusion {
  hosts: number;
  ranks_per_host: number;
  memory: string;
  limit: number;
  sizes: { bytes: number; separate_us: number; fused_us: number }[];
}
/** A whole step that the table was tuned for; `library`: the one that all routes name, where no mix was surely faster. */
export interface TunedStep {
  hosts: number;
  ranks_per_host: number;
  step: string;
  memory: string;
  library: string;
  gain: number;
  gain_low: number;
  gain_high: number;
  confidence: number;
  settled: boolean;
  times: { backend: string; median_us: number; low_us: number; high_us: number; samples: number }[];
  routes: { op: string; from: number; to: number | null; backend: string; algorithm: string }[];
}
export interface Routes {
  file: string;
  machine: string;
  cells: Cell[];
  fusion: Fusion[];
  tuned: TunedStep | null;
}
export interface TraceRow {
  op: string;
  group: string;
  group_size: number;
  bytes: number | null;
  count: number;
  phase: string;
  module: string;
  backend: string;
  total_us?: number;
  median_us?: number;
  exposed_us?: number;
}
export interface Bin {
  low: number;
  count: number;
  bytes: number;
}
export interface Sizes {
  histogram: Bin[];
  small: { limit: number; share_of_count: number; share_of_bytes: number };
}
/** Start and end in µs, sublane, numbers of operation and backend in `names`, operations merged, bytes, µs exposed. */
export type Bar = [number, number, number, number, number, number, number, number];
export interface Timeline {
  step_us: number;
  merged: boolean;
  waits_known: boolean;
  names: string[];
  ranks: { rank: number; lanes: number; exposed_us: number; bars: Bar[] }[];
  ranks_left_out: number;
}
export interface Trace extends Sizes {
  file: string;
  format: string;
  world: number;
  ranks_traced: number;
  operations: number;
  rank: number;
  steps: number;
  step_us: number;
  rows: TraceRow[];
  rows_left_out: number;
  skew: {
    group: string;
    op: string;
    collectives: number;
    median_us: number;
    p99_us: number;
    last_rank: number;
    last_share: number;
  }[];
  problems: { kind: string; sentence: string }[];
  remarks: string[];
  timeline: Timeline | null;
}
export interface Side {
  bytes: number;
  count: number;
}
export interface Difference {
  verdict: string;
  op: string;
  group: string;
  rank: number | null;
  expected: Side | null;
  observed: Side | null;
  detail: string;
  cause: string;
  ranks: number;
}
export interface Reconcile {
  file: string;
  source: string;
  matched: boolean;
  rows_matched: number;
  rows_explained: number;
  rows_unexplained: number;
  differences: Difference[];
  differences_left_out: number;
  hypotheses: { hypothesis: string; rows: number; accepted: boolean }[];
  time: Waits | null;
}
/** Why programs waited for communication, where times were compared; µs a step by cause. */
export interface Waits {
  expected_by: string;
  steps: number;
  step_us: number | null;
  exposed_us: number | null;
  causes: Record<string, number> | null;
  remarks: string[];
  waits: { cause: string; us: number; sentence: string }[];
}
export interface GemmRow {
  name: string;
  block: string;
  pass: string;
  count: number;
  m: number;
  n: number;
  k: number;
  batch: number;
  predicted_us: number;
  tflops: number;
  efficiency: number;
  lost_to: string;
  lost_us: Record<string, number>;
}
export interface Advice {
  knob: string;
  was: number;
  now: number;
  gain_text: string;
  parameters_change: number;
  why: string;
}
export interface Shape {
  file: string;
  model: string;
  gpu: string;
  calibrated: boolean;
  step_us: number;
  tflops_per_gpu: number;
  efficiency: number;
  gemms: GemmRow[];
  advice: Advice[];
}
export interface GemmSweep {
  file: string;
  gpu: string;
  calibrated: boolean;
  rows: {
    m: number;
    n: number;
    k: number;
    predicted_us: number;
    tflops: number;
    efficiency: number;
    lost_to: string;
  }[];
}
export interface Lint {
  file: string;
  model: string;
  gpu: string;
  findings: { key: string; value: number; better: number | null; waste: number | null; why: string }[];
}
export interface Candidate {
  hidden: number;
  heads: number;
  head_dim: number;
  layers: number;
  ffn: number;
  vocab: number;
  parameters_change: number;
  gain: number | null;
  gain_text: string;
  efficiency: number;
}
export interface Search {
  file: string;
  model: string;
  gpu: string;
  calibrated: boolean;
  candidates: number;
  given: Candidate;
  pareto: Candidate[];
  best_per_parameter: Candidate;
}
export interface Plan extends Sizes {
  file: string;
  model: string;
  framework: string;
  layout: string;
  totals: { group: string; bytes: number; wire_bytes: number; count: number; textbook: number | null }[];
  machine: string | null;
  step_us: number | null;
  breakdown: Record<string, number>;
}
export interface Replay {
  file: string;
  schedule: string;
  ranks: number;
  step_us: Record<string, number>;
  predicted_us: Record<string, number>;
  calibrated_us: Record<string, number>;
}
export interface FileNote {
  file: string;
  kind: string;
  status: "used" | "not used" | "refused";
  why: string;
}
export interface Run {
  name: string;
  findings: { section: string; sentence: string; headline: boolean }[];
  not_measured: { what: string; command: string }[];
  info: Info[];
  bench: Bench[];
  steps: Steps[];
  routes: Routes[];
  traces: Trace[];
  reconcile: Reconcile[];
  shapes: Shape[];
  gemms: GemmSweep[];
  lints: Lint[];
  searches: Search[];
  plans: Plan[];
  replays: Replay[];
  skipped: string[];
  failed: string[];
  files: FileNote[];
}
export interface Change {
  what: string;
  before: number;
  after: number;
}
export interface Report {
  schema: string;
  version: string;
  runs: Run[];
  changes: Change[];
}

export function readReport(): Report {
  return JSON.parse(document.getElementById("report-data")!.textContent!) as Report;
}
