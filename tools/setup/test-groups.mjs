/**
 * A group of test files. `needsHost`: real sandboxes run, so the host check must have passed.
 * @typedef {{ name: string, folder: string, pattern: RegExp, needsHost: boolean }} TestGroup
 */

const anyTest = /\.test\.ts$/;

/**
 * Every group of `npm test`, in the order in which they run: what fails fast comes first.
 * @type {readonly TestGroup[]}
 */
export const testGroups = [
  { name: "unit", folder: "packages", pattern: /^packages\/[^/]+\/src\/.*\.test\.ts$/, needsHost: false },
  { name: "repository", folder: "tools", pattern: anyTest, needsHost: false },
  { name: "bench", folder: "bench", pattern: anyTest, needsHost: false },
  { name: "host", folder: "tests/host", pattern: anyTest, needsHost: true },
  { name: "e2e", folder: "tests/e2e", pattern: anyTest, needsHost: true },
  { name: "faults", folder: "tests/faults", pattern: anyTest, needsHost: true },
  { name: "security", folder: "tests/security", pattern: anyTest, needsHost: true },
  { name: "acceptance", folder: "tests/acceptance", pattern: anyTest, needsHost: true },
];
