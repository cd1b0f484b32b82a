// The benchmarks `create` and `exec` exit 0: their floors are met.
import { test } from "node:test";
import { reasonToSkip, startPlatform } from "@dsec/testkit";
import { clause, sized } from "../report.ts";
import { lastWords, repository, runProgram } from "../run-program.ts";

for (const name of ["create", "exec"]) {
  test(`npm run bench -- ${name} meets its floors`, { skip: reasonToSkip(), timeout: 900_000 }, async (t) => {
    await using platform = await startPlatform({ signal: t.signal });
    const size = sized({ short: ["--quick"], full: [], soak: [] });
    const report = await runProgram(["npm", "run", "bench", "--", name, ...size], {
      cwd: repository,
      env: platform.env,
      signal: t.signal,
    });
    t.diagnostic(lastWords(report));
    await clause(`exit code of npm run bench -- ${[name, ...size].join(" ")}`, {
      limit: { equals: 0 },
      measure: () => report.exitCode ?? -1,
    });
  });
}
