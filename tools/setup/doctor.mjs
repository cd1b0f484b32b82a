// `npm run doctor`: will this host do? Before anything is installed it answers from the host check alone; afterwards it
// is `dsec doctor`, which knows more.
import { existsSync } from "node:fs";
import { checkHost, describeReport } from "./host-check.mjs";
import { becomeDsec, dsecMain, pinnedNode } from "./pinned-node.mjs";
import { missingPackages } from "./steps.mjs";

function main() {
  if (existsSync(pinnedNode) && existsSync(dsecMain)) {
    becomeDsec(["doctor", ...process.argv.slice(2)]);
    return;
  }
  const reports = checkHost();
  for (const report of reports) console.log(describeReport(report));
  const isUsable = reports.every(({ kind }) => kind !== "failed");
  if (isUsable) {
    for (const { name, reason } of missingPackages())
      console.log(`later    Debian package ${name}: ${reason}`);
  }
  console.log(isUsable ? "This host will do." : "This host will not do; nothing was installed.");
  process.exitCode = isUsable ? 0 : 2;
}

main();
