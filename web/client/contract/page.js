// Plays the scenarios in a page.
import * as client from '../dist/index.js';
import { play, scenariosOf } from './scenarios.js';

globalThis.playAll = (place) => play(scenariosOf(client, place));
