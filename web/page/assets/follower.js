import { parse } from './json.js';
import { Replica } from './replica.js';

const EVENTS = ['hello', 'reset', 'upsert', 'delete', 'end_of_snapshot', 'bookmark', 'status', 'goodbye'];
const QUIET_MS = 1_000;       // after so long without an event, a flush is over
const MAX_WAIT_MS = 30_000;   // between attempts after a refusal

// Follows one watch with an EventSource, until it is closed.
//
// A connection that is lost, or ended with goodbye, is opened again by the browser
// itself, which sends the last id that it received. Only after a refusal (a status
// other than 200) it never does; then a new EventSource is made, which gets the id
// in the URL.
export class Follower {
  replica = new Replica();
  connected = false;
  goodbye = '';           // why the server ended the stream; '' once coming back failed
  leaving = false;        // goodbye was said, the end of the stream is yet to come
  lostAt = 0;             // 0: not lost
  freshAt = 0;            // when the stream was last known to be alive
  heartbeat = 15_000;
  failures = 0;
  newsAt = 0;             // since when the server knows of more than it told us

  // changed is called after each event, and when the connection is lost or back.
  constructor(watch, changed) {
    this.watch = watch;
    this.changed = changed;
    this.open();
  }

  open() {
    this.close();
    const id = this.replica.lastId;
    const query = id ? `?last_event_id=${encodeURIComponent(id)}` : '';
    this.source = new EventSource(`v1/watches/${encodeURIComponent(this.watch)}/events${query}`);
    for (const type of EVENTS) this.source.addEventListener(type, (e) => this.take(type, e));
    this.source.onerror = () => this.lost();
  }

  close() {
    clearTimeout(this.again);
    clearTimeout(this.quiet);
    this.source?.close();
  }

  take(type, { data, lastEventId }) {
    const event = parse(data);
    this.freshAt = Date.now();
    this.newsAt = 0;
    if (type === 'hello') this.greeted(event);
    if (type === 'goodbye') Object.assign(this, { goodbye: event.reason, leaving: true });
    this.replica.apply(type, event, lastEventId);
    this.settleWhenQuiet();
    this.changed();
  }

  greeted({ heartbeat_ms }) {
    this.connected = true;
    this.goodbye = '';
    this.leaving = false;
    this.lostAt = 0;
    this.failures = 0;
    this.heartbeat = heartbeat_ms;
  }

  // Some upstreams give deletes no revision of their own, so that a transaction
  // can end with the id with which the last one ended. Then silence says that the
  // flush is over, and with it the transaction.
  settleWhenQuiet() {
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => {
      const { replica } = this;
      if (!this.connected || !replica.dirty || replica.loading) return;
      replica.settle();
      this.changed();
    }, QUIET_MS);
  }

  lost(since = Date.now()) {
    if (!this.leaving) this.goodbye = '';
    this.leaving = false;
    this.lostAt ||= since;
    this.connected = false;
    if (this.source.readyState === EventSource.CLOSED) this.openLater();
    this.changed();
  }

  openLater() {
    const wait = Math.min(MAX_WAIT_MS, 1000 * 2 ** this.failures++);
    clearTimeout(this.again);
    this.again = setTimeout(() => this.open(), wait * (0.5 + Math.random() / 2));
  }

  // The watchdog. An EventSource does not show the heartbeat, which is a comment:
  // a connection that died without a word looks like a quiet watch. But a stream
  // that lives tells every revision, with a bookmark at the latest, within about
  // two heartbeats. revision is what the server says of the watch elsewhere.
  compare(revision, now = Date.now()) {
    if (!this.connected || !this.replica.complete || this.replica.loading) return;
    if (revision === this.replica.revision) {
      this.newsAt = 0;
      this.freshAt = now;
      return;
    }
    this.newsAt ||= now;
    if (now - this.newsAt < 2 * this.heartbeat) return;
    this.newsAt = 0;
    this.lost(this.freshAt);
    this.open();
  }
}
