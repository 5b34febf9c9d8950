/** Reports whether revision a is at least b: both are numbers that may be too large for a number. */
export const reaches = (a: string, b: string): boolean => a.length > b.length || (a.length === b.length && a >= b);
