// One process, so that the scenarios share a gateway, an upstream and Chromium.
// To run a single one: node --test scenarios/restart.mjs
import './first_paint.mjs';
import './policy.mjs';
import './accessibility.mjs';
import './keyboard.mjs';
import './editing.mjs';
import './values.mjs';
import './upstream_away.mjs';
import './restart.mjs';
import './silence.mjs';
import './drain.mjs';
import './operators.mjs';
import './delivery.mjs';
import './tabs.mjs';
import './hidden.mjs';
import './token.mjs';
import './session.mjs';
import './renewal.mjs';
import './users.mjs';
import './revoked.mjs';
import './anonymous.mjs';
import './slow_cpu.mjs';
import './nginx.mjs';
import './examples.mjs';
import './client.mjs';
import './updated.mjs';
import './many_rows.mjs';
