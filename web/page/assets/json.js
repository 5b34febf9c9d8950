// JSON that keeps every digit, and what a cell shows of it.

// Numbers that JavaScript would round keep their digits where the browser can
// tell what was written (JSON.rawJSON); in an older one they are rounded.
const exact = (_, v, context) =>
  typeof v === 'number' && context?.source && JSON.rawJSON && String(v) !== context.source
    ? JSON.rawJSON(context.source) : v;

const isRaw = (v) => Boolean(JSON.isRawJSON?.(v));

export const parse = (text) => JSON.parse(text, exact);

export const isObject = (v) => v !== null && typeof v === 'object' && !Array.isArray(v) && !isRaw(v);

// Text as it is, anything else as JSON; nothing for a field that is not there.
export const textOf = (v) => v === undefined ? '' : typeof v === 'string' ? v : JSON.stringify(v);

// NaN for what is no number.
export const numberOf = (v) => typeof v === 'number' ? v : isRaw(v) ? Number(v.rawJSON) : NaN;
