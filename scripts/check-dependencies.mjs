#!/usr/bin/env node
// Checks what latentkit is made of: licences of the packages that users install, versions of what is compiled in, and
// known vulnerabilities by npm audit. Where npm cannot ask, the check says so and does not fail.
//   --debian   also says which vendored sources Debian has in a newer version (apt-get update first)
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { onPath } from "./native-build.mjs";
import { installedPackages, THIRD_PARTY } from "./release/bill-of-materials.mjs";
import { root } from "./setup.mjs";

/** Licences that ask for no more than their text. */
const LICENSES = ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "CC0-1.0", "ISC", "MIT"];
/** npm alone takes half of it on a busy machine. */
const AUDIT_MS = 60_000;

/**
 * Packages that users install under another licence than these.
 * @param {readonly [path: string, entry: { license?: string }][]} installed entries of the lock file
 */
export function checkLicenses(installed) {
  const isAllowed = (license) => {
    const choices = String(license).replace(/[()]/g, "").split(" OR ");
    return choices.some((choice) => choice.split(" AND ").every((part) => LICENSES.includes(part)));
  };
  return installed
    .filter(([, { license }]) => !isAllowed(license))
    .map(([path, { license }]) => `${path}: expected one of the licences ${LICENSES.join(", ")}, received ${license}.`);
}

/**
 * Entries of third-party.json that NOTICE or the installed package contradicts.
 * @param {readonly import("./release/bill-of-materials.mjs").ThirdParty[]} parts
 * @param {string} notice
 */
export function checkVersions(parts, notice) {
  return parts.flatMap(({ name, version, copyright, text }) => {
    const isNoticed = notice.includes(copyright) && (!/^\d+\./.test(version) || notice.includes(`${name} ${version}`));
    const missing = isNoticed ? [] : [`NOTICE: expected ${name} ${version} with "${copyright}".`];
    if (!text.startsWith("node_modules/")) return missing;
    const installed = JSON.parse(readFileSync(join(root, "node_modules", name, "package.json"), "utf8")).version;
    const differs = `scripts/release/third-party.json: expected ${name} ${installed}, received ${version}.`;
    return installed === version ? missing : [...missing, differs];
  });
}

/**
 * Findings of npm audit, or why it could not ask.
 * @returns {{ findings: string[], silence?: string }}
 */
function audit() {
  // an npm that is set to be offline would report that nothing is known, without asking
  const args = ["audit", "--omit=dev", "--omit=peer", "--no-offline", "--json"];
  const program = process.env.npm_execpath;
  const [command, first] = program === undefined ? ["npm", []] : [process.execPath, [program]];
  const done = spawnSync(command, [...first, ...args], { cwd: root, encoding: "utf8", timeout: AUDIT_MS });
  return done.error ? { findings: [], silence: done.error.message } : readAudit(done.stdout);
}

/**
 * High and critical vulnerabilities in a report of npm audit; without a report, why there is none.
 * @param {string} printed standard output of npm audit --json
 * @returns {{ findings: string[], silence?: string }}
 */
export function readAudit(printed) {
  let report;
  try {
    report = JSON.parse(printed);
  } catch {
    return { findings: [], silence: "npm printed no report" };
  }
  if (report.vulnerabilities === undefined)
    return { findings: [], silence: report.message || report.error?.summary || "npm gave no reason" };
  const vulnerable = Object.values(report.vulnerabilities);
  const serious = vulnerable.filter(({ severity }) => severity === "high" || severity === "critical");
  return { findings: serious.map(({ name, range, severity }) => `${name} ${range} has a ${severity} vulnerability.`) };
}

/** Prints the vendored version and Debian's, by apt's package lists. */
function reportDebian() {
  if (!onPath("apt-cache")) {
    process.stderr.write("apt-cache was not found: Debian's versions are not compared.\n");
    return;
  }
  for (const { name, version, debian } of THIRD_PARTY) {
    if (debian === undefined) continue;
    const { stdout } = spawnSync("apt-cache", ["show", "--no-all-versions", debian], { encoding: "utf8" });
    const [, offered] = /^Version: (?:\d+:)?([^\s+~-]+)/m.exec(stdout) ?? [];
    const isNewer = offered && spawnSync("dpkg", ["--compare-versions", offered, "gt", version]).status === 0;
    const verdict = offered === undefined ? "Debian's lists here have none" : `Debian has ${offered}`;
    process.stderr.write(`${name} ${version}: ${verdict}${isNewer ? ", which is NEWER" : ""}.\n`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { values } = parseArgs({ options: { debian: { type: "boolean" } } });
  const notice = readFileSync(join(root, "NOTICE"), "utf8");
  const { findings: vulnerable, silence } = audit();
  const findings = [...checkLicenses(installedPackages(root)), ...checkVersions(THIRD_PARTY, notice), ...vulnerable];
  if (values.debian) reportDebian();
  for (const finding of findings) process.stderr.write(`${finding}\n`);
  if (silence !== undefined)
    process.stderr.write(
      `Known vulnerabilities were NOT checked, because npm audit could not ask: ${silence.trim()}.\n`,
    );
  const checked = silence === undefined ? "Licences, versions and known vulnerabilities" : "Licences and versions";
  if (findings.length === 0) process.stderr.write(`${checked} are in order.\n`);
  process.exit(findings.length === 0 ? 0 : 1);
}
