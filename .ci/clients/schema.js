// Writes the types of the schemas: node schema.js openapi.yaml schema.d.ts. Where a program gives a
// time, a Date is as good as its text; answers have texts, and are called …Output or …Known.
import { writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import openapiTS, { astToString, COMMENT_HEADER } from "openapi-typescript";
import ts from "typescript";

const [document, target] = process.argv.slice(2);
const ANSWER = /\/schemas\/\w+(Output|Known)\b/;
const { factory, SyntaxKind } = ts;
const text = factory.createKeywordTypeNode(SyntaxKind.StringKeyword);
const date = factory.createTypeReferenceNode("Date");
const none = factory.createLiteralTypeNode(factory.createNull());

const written = await openapiTS(pathToFileURL(document), {
  transform({ format, nullable }, { path }) {
    if (format !== "date-time" || ANSWER.test(path ?? "")) return undefined;
    return factory.createUnionTypeNode(nullable ? [text, date, none] : [text, date]);
  },
});
await writeFile(target, COMMENT_HEADER + astToString(written));
