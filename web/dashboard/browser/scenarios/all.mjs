// One process, so that the scenarios share a gateway, an upstream and Chromium.
// A single one runs by itself, too: node --test scenarios/tabs.mjs
import './token.mjs';
