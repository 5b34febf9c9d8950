// Plays the scenarios in a runtime without a browser, and prints the results as the last line.
import * as client from '../dist/index.js';
import { play, scenariosOf } from './scenarios.js';

const [place] = globalThis.Deno?.args ?? process.argv.slice(2);
console.log(JSON.stringify(await play(scenariosOf(client, JSON.parse(place)))));
