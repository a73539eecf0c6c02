/**
 * Each part of a CSV file begins with its header.
 *
 * @param {Rows} rows
 * @param {boolean} isCsv
 * @returns {AsyncGenerator<Part, void, void>}
 */
export function parts(rows: Rows, isCsv: boolean): AsyncGenerator<Part, void, void>;
export type Rows = Iterable<string | object> | AsyncIterable<string | object>;
export type Part = {
    text: string;
    /**
     * how many lines of the file come before it, less those of its header
     */
    before: number;
};
