/** Divides a file of subscribers into parts that the service takes. */

/** @typedef {Iterable<string | object> | AsyncIterable<string | object>} Rows */
/**
 * @typedef {object} Part
 * @property {string} text
 * @property {number} before how many lines of the file come before it, less those of its header
 */

const MOST_BYTES = 1024 * 1024;
const MOST_ROWS = 5_000;

/**
 * Each part of a CSV file begins with its header.
 *
 * @param {Rows} rows
 * @param {boolean} isCsv
 * @returns {AsyncGenerator<Part, void, void>}
 */
export async function* parts(rows, isCsv) {
  let header = "";
  let hasHeader = !isCsv;
  let lines = 0; // before the next record
  let begin = 0; // lines before the part
  let ofHeader = 0;
  /** @type {string[]} */
  let texts = [];
  let size = 0;
  const part = () => ({ text: header + texts.join(""), before: begin - ofHeader });
  for await (const record of records(rows, isCsv)) {
    lines += count(record, "\n");
    if (!hasHeader) {
      // The first line with names, with what comes before it, such as Excel's `sep=;`.
      header += record;
      hasHeader = !/^[\ufeff\s,;|]*(sep=.*)?\s*$/i.test(record);
      begin = ofHeader = lines;
      size = bytesOf(header);
      continue;
    }
    const bytes = bytesOf(record);
    if (texts.length > 0 && (texts.length === MOST_ROWS || size + bytes > MOST_BYTES)) {
      yield part();
      begin = lines - count(record, "\n");
      texts = [];
      size = bytesOf(header);
    }
    texts.push(record);
    size += bytes;
  }
  if (texts.length > 0 || header) yield part();
}

/**
 * Rows of one or more lines, because a quoted field of a CSV file may have several.
 *
 * @param {Rows} rows
 * @param {boolean} isCsv
 */
async function* records(rows, isCsv) {
  let record = "";
  let quotes = 0;
  for await (const line of linesOf(rows)) {
    record += line;
    quotes += count(line, '"');
    if (isCsv && quotes % 2 === 1 && record.length < MOST_BYTES) continue;
    yield record;
    record = "";
    quotes = 0;
  }
  if (record) yield record;
}

/** @param {Rows} rows */
async function* linesOf(rows) {
  let rest = "";
  for await (const row of rows) {
    if (ArrayBuffer.isView(row)) throw new TypeError('decode the file: createReadStream(name, "utf8")');
    const text = rest + (typeof row === "string" ? row : `${JSON.stringify(row)}\n`);
    const end = text.lastIndexOf("\n") + 1;
    for (const line of text.slice(0, end).split(/(?<=\n)/)) if (line) yield line;
    rest = text.slice(end);
  }
  if (rest) yield `${rest}\n`;
}

const encoder = new TextEncoder();

/** @param {string} text */
function bytesOf(text) {
  return encoder.encode(text).length;
}

/**
 * @param {string} text
 * @param {string} character
 */
function count(text, character) {
  return text.split(character).length - 1;
}
