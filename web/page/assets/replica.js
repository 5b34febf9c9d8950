// Identity of a resource: two keys that differ only in their encoding are two.
export const identity = (e) => `${e.key_encoding ?? ''}\0${e.key}`;

// A copy of one watch, made of the events of its stream.
//
// `shown` is the last consistent state. It is replaced as a whole, and `version`
// counts up, only where the protocol says that the state is one that the upstream
// had: at end_of_snapshot, at the bookmark that ends a catch-up, and else at an
// event with a new id. Between them, `rows` is half of something.
export class Replica {
  rows = new Map();
  shown = [];
  version = 0;
  complete = false;       // has been consistent once
  loading = 'connecting'; // why rows will be inconsistent for a while; '' if not
  dirty = false;          // rows has changed since the last consistent state
  freshness = null;       // {state, since, reason}, as the server last said
  revision = '';
  lastId = '';            // resumes exactly here

  // Takes an event by the name of its type; unknown ones are ignored.
  apply(type, event, id) {
    const before = this.lastId;
    this.lastId = id || before;
    this[`on_${type}`]?.(event);
    if (this.dirty && !this.loading && this.lastId !== before) this.settle();
  }

  on_hello({ watches }) {
    this.freshness = null;
    this.loading = watches[0].mode === 'resume' ? 'catching up' : 'loading the snapshot';
  }

  on_reset({ reason }) {
    this.rows.clear();
    this.dirty = true;
    this.loading = reason === 'initial' ? 'loading the snapshot' : `loading everything anew (${reason})`;
  }

  on_upsert(e) {
    this.rows.set(identity(e), e);
    this.changed(e);
  }

  on_delete(e) {
    this.rows.delete(identity(e));
    this.changed(e);
  }

  on_end_of_snapshot({ revision }) {
    this.revision = revision;
    this.settle();
  }

  on_bookmark({ revision }) {
    this.revision = revision;
    this.settle();
  }

  on_status(e) {
    this.freshness = e;
    if (e.state === 'catching_up') this.loading = 'catching up'; // up to the next bookmark
  }

  changed({ revision }) {
    this.dirty = true;
    // In a snapshot these are the revisions of its parts.
    if (!this.loading) this.revision = revision;
  }

  settle() {
    this.loading = '';
    this.complete = true;
    if (!this.dirty && this.version) return;
    this.shown = [...this.rows.values()];
    this.dirty = false;
    this.version++;
  }
}
