// node run.mjs NAME FILE...: runs the tests of these files with Node's test runner. Tests that
// fail are run once more alone: they drive browsers and whole gateways, and depend on the time
// that other processes take. If $REPORT is a file, the results are appended to it, as
// tools/testrun does. To run only some tests, set $ONLY_TESTS to a JSON array of their names.
import { spawn } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [name, ...files] = process.argv.slice(2);
const first = await play(process.env.ONLY_TESTS);
const failed = first.results.filter(({ status }) => status === 'fail').map(({ test }) => test);
let passed = first.code === 0;
let again = { results: [] };
if (!passed && failed.length > 0) {
  console.log(`nodetest: a second try alone: ${failed.join(', ')}`);
  again = await play(JSON.stringify(failed));
  passed = again.code === 0 && failed.every((test) => status(again, test) === 'pass');
}
record();
process.exitCode = passed ? 0 : 1;

function status({ results }, test) {
  return results.find((result) => result.test === test)?.status;
}

/** Runs the tests once: their results, and the exit code. */
function play(only) {
  const dir = mkdtempSync(join(tmpdir(), 'nodetest-'));
  const out = join(dir, 'results');
  const args = ['--test', '--test-force-exit', '--test-reporter=spec', '--test-reporter-destination=stdout'];
  args.push(`--test-reporter=${new URL('reporter.mjs', import.meta.url)}`, `--test-reporter-destination=${out}`);
  const env = { ...process.env, ...(only && { ONLY_TESTS: only }) };
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...args, ...files], { stdio: 'inherit', env });
    child.on('error', reject);
    child.on('exit', (code) => {
      const results = readFileSync(out, 'utf8').trim().split('\n').filter(Boolean).map(JSON.parse);
      rmSync(dir, { recursive: true });
      resolve({ code, results });
    });
  });
}

/** Appends the results to the report. */
function record() {
  if (!process.env.REPORT) return;
  const lines = first.results.map((result) => {
    const flaky = result.status === 'fail' && status(again, result.test) === 'pass';
    return JSON.stringify({ package: name, ...result, ...(flaky && { status: 'pass', again: 'passed alone' }) });
  });
  const seconds = first.results.reduce((sum, result) => sum + result.seconds, 0);
  lines.push(JSON.stringify({ package: name, status: passed ? 'pass' : 'fail', seconds }));
  appendFileSync(process.env.REPORT, `${lines.join('\n')}\n`);
}
