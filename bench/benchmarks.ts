import type { Benchmark } from "./benchmark.ts";
import { create } from "./create.ts";
import { exec } from "./exec.ts";

/** All benchmarks, in the order of `list`. */
export const benchmarks: readonly Benchmark[] = [create, exec];
