/** Reports whether a JSON value is a number; an integer too large for a number is a bigint. */
export const isNumber = (value: unknown): value is number | bigint => typeof value === 'number' || typeof value === 'bigint';
