// Reads a chosen file record by record from any place in it. Only one part is in memory at a time.
(() => {
  const LF = 10;
  const QUOTE = 34;
  const HEAD = 48 * 1024;
  // Bytes of a unit, and how many bytes of UTF-8 a byte becomes at most.
  const ENCODINGS = {
    "utf-8": { size: 1, growth: 1 },
    "utf-16le": { size: 2, growth: 1.5 },
    "utf-16be": { size: 2, growth: 1.5 },
    "windows-1252": { size: 1, growth: 3 },
  };
  const MARKS = [
    [[0xef, 0xbb, 0xbf], "utf-8"],
    [[0xff, 0xfe], "utf-16le"],
    [[0xfe, 0xff], "utf-16be"],
  ];
  const NOT_TEXT = [
    [[0x1f, 0x8b], translated("This file is compressed. Decompress it first.")],
    [
      [0x50, 0x4b, 0x03, 0x04],
      translated("This is a workbook or an archive. Save the table as “CSV UTF-8”."),
    ],
  ];

  // An error that the user can correct; its message is shown.
  class Unreadable extends Error {}

  const startsWith = (bytes, mark) => mark.every((byte, n) => bytes[n] === byte);

  async function bytesOf(file, from, to) {
    try {
      return new Uint8Array(await file.slice(from, to).arrayBuffer());
    } catch {
      throw new Unreadable(translated("The file cannot be read any more. Choose it again."));
    }
  }

  // The encoding that the file seems to have, and where its text begins.
  async function encodingOf(file) {
    const bytes = await bytesOf(file, 0, HEAD);
    for (const [mark, words] of NOT_TEXT) {
      if (startsWith(bytes, mark)) throw new Unreadable(words);
    }
    for (const [mark, encoding] of MARKS) {
      if (startsWith(bytes, mark)) return { encoding, begin: mark.length };
    }
    if (bytes.length > 3 && !bytes[1] && !bytes[3]) return { encoding: "utf-16le", begin: 0 };
    if (bytes.length > 3 && !bytes[0] && !bytes[2]) return { encoding: "utf-16be", begin: 0 };
    return { encoding: isDecoded(bytes, "utf-8") ? "utf-8" : "windows-1252", begin: 0 };
  }

  function isDecoded(bytes, encoding) {
    try {
      new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: true });
      return true;
    } catch {
      return false;
    }
  }

  // The beginning of the text, which may end in the middle of a record.
  async function headOf(file, { encoding, begin }) {
    const { growth } = ENCODINGS[encoding];
    const bytes = await bytesOf(file, begin, begin + 2 * Math.floor(HEAD / growth / 2));
    return new TextDecoder(encoding).decode(bytes, { stream: true });
  }

  // What tells two files apart, without reading them whole.
  async function printOf(file, begin, end) {
    if (!globalThis.crypto?.subtle) return "";
    const hash = await crypto.subtle.digest("SHA-256", await bytesOf(file, begin, end));
    return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  function unitsOf(bytes, encoding) {
    if (ENCODINGS[encoding].size === 1) return bytes;
    const view = new DataView(bytes.buffer);
    const units = new Uint16Array(Math.floor(bytes.length / 2));
    for (let n = 0; n < units.length; n++)
      units[n] = view.getUint16(2 * n, encoding.endsWith("le"));
    return units;
  }

  // The records, each with its line and where it begins and ends. In CSV (with a separator) a field
  // in quotes contains line feeds. The last record may be incomplete; then `isOpen`.
  function recordsOf(units, separator, first, most) {
    const [PLAIN, START, QUOTED, CLOSED] = [0, 1, 2, 3];
    const apart = separator ? separator.charCodeAt(0) : -1;
    const begin = separator ? START : PLAIN;
    const records = [];
    let [state, from, line, lines] = [begin, 0, first, first];
    for (let at = 0; at < units.length && records.length < most; at++) {
      const unit = units[at];
      if (unit === LF) {
        lines++;
        if (state === QUOTED) continue;
        records.push({ line, from, to: at + 1 });
        [state, from, line] = [begin, at + 1, lines];
      } else if (state === QUOTED) {
        if (unit === QUOTE) state = CLOSED;
      } else if (unit === apart) state = START;
      else state = unit === QUOTE && state !== PLAIN ? QUOTED : PLAIN;
    }
    const isOpen = records.length < most && from < units.length;
    if (isOpen) records.push({ line, from, to: units.length });
    return { records, isOpen, next: isOpen ? lines : line };
  }

  // Where the record of this line begins, which is near the beginning of the file.
  async function startOf(file, { encoding, begin, separator }, line) {
    const { size } = ENCODINGS[encoding];
    const bytes = await bytesOf(file, begin, begin + size * HEAD);
    const { records } = recordsOf(unitsOf(bytes, encoding), separator, 1, line);
    const found = records.find((record) => record.line >= line);
    return { offset: found ? begin + size * found.from : file.size, line };
  }

  // The part of the file from `offset` on, where `line` begins: at most `most` records and `bytes`
  // bytes of UTF-8. null at the end of the file.
  async function partOf(file, { encoding, separator }, { offset, line }, { most, bytes: room }) {
    const { size, growth } = ENCODINGS[encoding];
    const bytes = await bytesOf(file, offset, offset + 2 * Math.floor(room / growth / 2));
    if (!bytes.length) return null;
    const found = recordsOf(unitsOf(bytes, encoding), separator, line, most);
    const { records } = found;
    let next = found.next;
    const isAtEnd = offset + bytes.length >= file.size;
    if (found.isOpen && !isAtEnd) next = records.pop().line;
    if (!records.length) {
      const words = translated("Line %(line)s: The row that begins here is too long.", { line });
      const hint = translated("Perhaps a double quote at the beginning of a field does not end.");
      throw new Unreadable(separator ? `${words} ${hint}` : words);
    }
    const end = size * records.at(-1).to;
    const decode = ({ from, to }) =>
      new TextDecoder(encoding, { ignoreBOM: true }).decode(bytes.subarray(size * from, size * to));
    let text;
    try {
      text = new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(
        bytes.subarray(0, end),
      );
    } catch {
      throw undecodable(records, decode, encoding);
    }
    const byLine = new Map(records.map((record) => [record.line, record]));
    return {
      text,
      lines: [...byLine.keys()],
      textOf: (number) => (byLine.has(number) ? decode(byLine.get(number)) : ""),
      next: { offset: offset + end, line: next },
    };
  }

  function undecodable(records, decode, encoding) {
    for (const record of records) {
      const text = decode(record);
      const at = text.indexOf("\ufffd");
      if (at < 0) continue;
      const before = text.slice(0, at).split("\n");
      return new Unreadable(
        translated(
          "Line %(line)s, column %(column)s: This is not %(encoding)s. Choose another encoding above.",
          {
            line: record.line + before.length - 1,
            column: before.at(-1).length + 1,
            encoding,
          },
        ),
      );
    }
    return new Unreadable(
      translated("The file is not %(encoding)s. Choose another encoding above.", { encoding }),
    );
  }

  // The texts of one record of CSV.
  function fieldsOf(text, separator) {
    const fields = [];
    let [field, isQuoted, isStart] = ["", false, true];
    const record = text.replace(/\r?\n$/, "");
    for (let at = 0; at < record.length; at++) {
      const each = record[at];
      if (isQuoted && each === '"' && record[at + 1] === '"') {
        field += '"';
        at++;
      } else if (each === '"' && (isQuoted || isStart)) [isQuoted, isStart] = [!isQuoted, false];
      else if (each === separator && !isQuoted) {
        fields.push(field);
        [field, isStart] = ["", true];
      } else [field, isStart] = [field + each, false];
    }
    return [...fields, field];
  }

  // A line of CSV. No spreadsheet takes a field for a formula, even if it separates cells otherwise.
  function csvLine(fields, separator) {
    const safe = fields.map((field) =>
      String(field)
        .replace(/^(?=[=+\-@\t\r\n])/, "'")
        .replace(/([,;|\t\r\n][ "']*)(?=[=+\-@])/g, "$1'"),
    );
    const quoted = safe.map((field) =>
      /[",;|\t\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field,
    );
    return `${quoted.join(separator)}\r\n`;
  }

  window.pushsvcImportFile = {
    Unreadable,
    csvLine,
    encodingOf,
    fieldsOf,
    headOf,
    partOf,
    printOf,
    startOf,
  };
})();
