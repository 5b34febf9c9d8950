import { test as nodeTest } from 'node:test';

const names = process.env.ONLY_TESTS && JSON.parse(process.env.ONLY_TESTS);

/** Node's test, except that if $ONLY_TESTS names some tests, no others are run. */
export function test(name, options, play) {
  if (!names || names.includes(name)) nodeTest(name, options, play);
}
