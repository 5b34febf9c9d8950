/** A number in JSON; one that is too large for JavaScript's is a bigint. */
export const isNumber = (value: unknown): value is number | bigint => typeof value === 'number' || typeof value === 'bigint';
