import { patience } from './until.mjs';

/** A tab that shows the dashboard. */
export class Tab {
  constructor(page) {
    this.page = page;
    this.banner = page.getByTestId('stale-banner');
    this.table = page.getByTestId('resources');
    this.detail = page.getByTestId('resource-detail');
    this.rows = this.table.locator('[role=row][data-key]');
  }

  ready = () => this.page.locator('html[data-app=ready]').waitFor({ state: 'attached', timeout: patience });

  row = (key) => this.table.locator(`[role=row][data-key="${key}"]`);

  /** Waits until the table shows all of a watch, at revision or later. */
  async consistent({ rows, revision = '0', limit = patience }) {
    await this.page.waitForFunction(isConsistent, { rows, revision }, { timeout: limit, polling: 'raf' });
  }

  /** Returns the time until the table shows the gateway's current revision, in ms. */
  async delay(revision, limit = patience) {
    const began = performance.now();
    await this.consistent({ revision: String(revision), limit });
    return Math.round(performance.now() - began);
  }

  revision = () => this.table.getAttribute('data-revision');

  /** Waits until the first complete snapshot is painted, and returns when that was, in ms after the start of the navigation. */
  async consistentAfter() {
    const mark = await this.page.waitForFunction(() => performance.getEntriesByName('consistent')[0]?.startTime, undefined, {
      timeout: patience,
    });
    return mark.jsonValue();
  }
}

// Runs in the page.
function isConsistent({ rows, revision }) {
  const table = document.querySelector('[data-testid=resources]');
  if (table?.dataset.state !== 'in_sync') return false;
  if (rows !== undefined && table.dataset.count !== String(rows)) return false;
  return BigInt(table.dataset.revision) >= BigInt(revision);
}
